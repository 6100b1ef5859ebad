import { crc32 } from 'node:zlib';

/** A zip archive of files that are stored as they are: what Lambda takes for code. */
export function zip(files: ReadonlyMap<string, Uint8Array>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of files) {
    const path = Buffer.from(name, 'utf8');
    // Version 2.0, names in UTF-8, stored, 1980-01-01: APPNOTE.TXT 4.3.7 and 4.3.12 share these fields.
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(0x0800, 2);
    fields.writeUInt16LE(0x0021, 8);
    fields.writeUInt32LE(crc32(content), 10);
    fields.writeUInt32LE(content.length, 14);
    fields.writeUInt32LE(content.length, 18);
    fields.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, path, content]);
    const more = Buffer.alloc(14);
    more.writeUInt32LE((0o100644 << 16) >>> 0, 6); // Unix mode: every user may read it
    more.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), fields, more, path]));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(directory.length, 4);
  end.writeUInt16LE(directory.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, central, Buffer.from('PK\x05\x06', 'latin1'), end]);
}
