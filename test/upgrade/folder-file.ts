/** A data folder in one compressed file: the rows of its database, the state of its world, and what to expect of it. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from 'node:zlib'
import { embeddedPostgres } from '#store/embedded-server.ts'
import { type DatabaseRows, readRows, writeRows } from './database-rows.ts'

type Entry = { path: string; bytes: number; gzipped: boolean }
type Header<Expected> = { expected: Expected; rows: DatabaseRows; files: Entry[] }

/** What a start makes anew. */
const isMade = (path: string) => path.includes('compile-cache') || path.endsWith('.pid')

const worldFiles = (dataDir: string): string[] =>
  readdirSync(join(dataDir, 'world'), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name).slice(dataDir.length + 1))
    .filter((path) => !isMade(path))
    .sort()

/** Of a stopped gateway with an embedded database and a local world. */
export async function packFolder<Expected>(dataDir: string, expected: Expected): Promise<Buffer> {
  const server = await embeddedPostgres({ dataDir })
  const rows = await readRows(server.url).finally(() => server.close())
  const contents = worldFiles(dataDir).map((path) => {
    const stored = readFileSync(join(dataDir, path))
    const gzipped = path.endsWith('.gz')
    // Compressed with all others it is a quarter of that.
    return { path, gzipped, content: gzipped ? gunzipSync(stored) : stored }
  })
  const files = contents.map(({ path, gzipped, content }) => ({ path, gzipped, bytes: content.length }))
  const header: Header<Expected> = { expected, rows, files }
  const bytes = Buffer.concat([
    Buffer.from(`${JSON.stringify(header)}\n`),
    ...contents.map(({ content }) => content),
  ])
  return brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_LGWIN]: 24 } })
}

/** Makes the data folder as the gateway left it, and returns what to expect of it. */
export async function unpackFolder<Expected>(packed: Buffer, dataDir: string): Promise<Expected> {
  const bytes = brotliDecompressSync(packed)
  const headerEnd = bytes.indexOf('\n')
  const { expected, rows, files }: Header<Expected> = JSON.parse(bytes.toString('utf8', 0, headerEnd))
  let at = headerEnd + 1
  for (const { path, gzipped, bytes: size } of files) {
    const content = bytes.subarray(at, at + size)
    at += size
    mkdirSync(dirname(join(dataDir, path)), { recursive: true, mode: 0o700 })
    writeFileSync(join(dataDir, path), gzipped ? gzipSync(content) : content, { mode: 0o600 })
  }
  const server = await embeddedPostgres({ dataDir })
  await writeRows(server.url, rows).finally(() => server.close())
  return expected
}
