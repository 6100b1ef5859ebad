/** Writes the screenshots of docs/report.md: `node dev/run.mjs test/harness/report/pictures.ts`. Look at them before you commit. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportPage } from '../../../cli/report/page/page.ts';
import { reportOf } from '../../../cli/report/model/report.ts';
import { temporaryFolder } from '../processes/processes.ts';
import { startChromium } from './chromium.ts';
import { busyFacts } from './sample-facts.ts';

/** `from`: the id of the section with which the picture begins; absent: the top of the page. */
const pictures = [
  { name: 'report', width: 1100, height: 1000, theme: 'light', from: undefined },
  { name: 'report-time-line-dark', width: 1200, height: 1080, theme: 'dark', from: 'timeline' },
  { name: 'report-cas', width: 1200, height: 1100, theme: 'light', from: 'cas' },
  { name: 'report-narrow', width: 400, height: 860, theme: 'light', from: undefined },
] as const;

const { path, remove } = temporaryFolder('pictures');
const browser = await startChromium();
const file = join(path, 'report.html');
writeFileSync(file, reportPage(reportOf(await busyFacts(64, Date.now()))));
for (const { name, width, height, theme, from } of pictures) {
  const page = await browser.open(file, { width, height, theme });
  const top =
    from === undefined
      ? 0
      : await page.evaluate<number>(`document.getElementById('${from}').getBoundingClientRect().top + scrollY - 24`);
  const clip = { x: 0, y: top, width, height, scale: 1 };
  const { data } = await page.send('Page.captureScreenshot', { clip, captureBeyondViewport: true });
  writeFileSync(
    join(import.meta.dirname, '../../../docs/pictures', `${name}.png`),
    Buffer.from(String(data), 'base64'),
  );
  await page.close();
}
await browser.close();
remove();
