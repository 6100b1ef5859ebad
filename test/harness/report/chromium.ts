/**
 * A headless Chromium, driven over the pipe of its DevTools protocol (https://chromedevtools.github.io/devtools-protocol). A page gets
 * no network: every request that is not for its own file is recorded and fails. Chromium ends when this process does, since the pipe ends.
 */
import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { toolPath } from '../../tools/tools.ts';
import { temporaryFolder } from '../processes/processes.ts';

export interface Look {
  /** In pixels. */
  readonly width: number;
  readonly height?: number;
  readonly theme?: 'light' | 'dark';
  /** `false`: scripts of the page do not run. */
  readonly scripts?: false;
}

export interface BrowserPage {
  /** The value of an expression in the page: JSON. A promise is awaited. */
  evaluate<T>(expression: string): Promise<T>;
  /** A key of the keyboard: `Tab`, `Enter`, ` `, `a`. */
  press(key: string): Promise<void>;
  /** Text, as from an input method. */
  type(text: string): Promise<void>;
  send(method: string, params?: object): Promise<Record<string, unknown>>;
  /** Errors and warnings of the console, dialogs, uncaught exceptions. */
  readonly complaints: readonly string[];
  /** URLs of requests that are not for the file of the page. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

export interface Browser {
  /** Opens a file, and returns when it is loaded. */
  open(file: string, look: Look): Promise<BrowserPage>;
  close(): Promise<void>;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly sessionId?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

const flags = [
  '--headless',
  '--remote-debugging-pipe',
  '--disable-gpu',
  '--disable-extensions',
  '--disable-background-networking',
  '--disable-component-update',
  '--hide-scrollbars',
  '--no-first-run',
];

export async function startChromium(): Promise<Browser> {
  const profile = temporaryFolder('chromium');
  // Chromium refuses its sandbox to root. It opens only files of the tests.
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const child = spawn(await toolPath('chromium'), [...flags, ...asRoot, `--user-data-dir=${profile.path}`], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const [, , , toBrowser, fromBrowser] = child.stdio as unknown as [null, null, null, Writable, Readable];

  const waiting = new Map<number, (message: Message) => void>();
  const listeners = new Map<string, (message: Message) => void>();
  let last = 0;
  let rest = '';
  fromBrowser.setEncoding('utf8').on('data', (text: string) => {
    const messages = (rest + text).split('\0');
    rest = messages.pop() ?? '';
    for (const each of messages) {
      const message = JSON.parse(each) as Message;
      if (message.id === undefined) listeners.get(message.sessionId ?? '')?.(message);
      else waiting.get(message.id)?.(message);
      waiting.delete(message.id ?? 0);
    }
  });
  void exited.then(() => {
    for (const settle of waiting.values()) settle({ error: { message: 'Chromium has ended' } });
  });
  const send = (method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const id = (last += 1);
      waiting.set(id, ({ error, result = {} }) => {
        if (error === undefined) resolve(result);
        else reject(new Error(`${method}: ${error.message}`));
      });
      toBrowser.write(`${JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) })}\0`);
    });

  return {
    open: (file, look) => openPage(pathToFileURL(file).href, look, send, listeners),
    async close() {
      await send('Browser.close').catch(() => undefined);
      await exited;
      profile.remove();
    },
  };
}

type Send = (method: string, params?: object, sessionId?: string) => Promise<Record<string, unknown>>;

async function openPage(
  url: string,
  { width, height = 900, theme = 'light', scripts }: Look,
  browser: Send,
  listeners: Map<string, (message: Message) => void>,
): Promise<BrowserPage> {
  const { targetId } = await browser('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = (await browser('Target.attachToTarget', { targetId, flatten: true })) as { sessionId: string };
  const send = (method: string, params?: object) => browser(method, params, sessionId);
  const complaints: string[] = [];
  const requests: string[] = [];
  const loaded = Promise.withResolvers<void>();
  listeners.set(sessionId, ({ method = '', params = {} }) => {
    switch (method) {
      case 'Page.loadEventFired':
        return loaded.resolve();
      case 'Log.entryAdded':
      case 'Runtime.exceptionThrown':
      case 'Page.javascriptDialogOpening':
        return void complaints.push(`${method} ${JSON.stringify(params)}`);
      case 'Runtime.consoleAPICalled':
        if (['error', 'warning', 'assert'].includes(String(params['type']))) complaints.push(JSON.stringify(params));
        return undefined;
      case 'Fetch.requestPaused': {
        const { requestId, request } = params as { requestId: string; request: { url: string } };
        if (request.url === url) return void send('Fetch.continueRequest', { requestId });
        requests.push(request.url);
        return void send('Fetch.failRequest', { requestId, errorReason: 'AddressUnreachable' });
      }
      default:
        return undefined;
    }
  });
  for (const domain of ['Page', 'Runtime', 'Log']) await send(`${domain}.enable`);
  await send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
  await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
  if (scripts === false) await send('Emulation.setScriptExecutionDisabled', { value: true });
  await send('Page.navigate', { url });
  await loaded.promise;

  return {
    complaints,
    requests,
    send,
    async evaluate<T>(expression: string) {
      const answer = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
      const { result, exceptionDetails } = answer as { result: { value: T }; exceptionDetails?: object };
      if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
      return result.value;
    },
    async press(key) {
      const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
      const virtual = { Tab: 9, Enter: 13, ' ': 32 }[key] ?? key.toUpperCase().charCodeAt(0);
      const event = { key, code: key, windowsVirtualKeyCode: virtual, ...(text === undefined ? {} : { text }) };
      await send('Input.dispatchKeyEvent', { ...event, type: 'keyDown' });
      await send('Input.dispatchKeyEvent', { ...event, type: 'keyUp' });
    },
    type: async (text) => void (await send('Input.insertText', { text })),
    async close() {
      listeners.delete(sessionId);
      await browser('Target.closeTarget', { targetId });
    },
  };
}
