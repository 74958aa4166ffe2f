/** A process that holds an embedded server until its standard input ends; the tests kill it. */
import { type EmbeddedOptions, embeddedPostgres } from '#store/embedded-server.ts'

const options = JSON.parse(process.argv[2] ?? '') as EmbeddedOptions
const report = (word: string, value: unknown) => process.stdout.write(`${word} ${JSON.stringify(value)}\n`)

try {
  const server = await embeddedPostgres({ ...options, progress: (line) => report('progress', line) })
  report('ready', { url: server.url, version: server.version })
  process.stdin.resume().once('end', () => server.close())
} catch (error) {
  report('refused', error instanceof Error ? `${error.name}: ${error.message}` : String(error))
  process.stdin.destroy()
}
