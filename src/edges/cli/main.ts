import { homedir } from 'node:os'
import { runCli } from './cli.ts'
import { openBrowser } from './open-browser.ts'
import { readLine } from './read-line.ts'

const leaving = new AbortController()
const interruptListeners: (() => void)[] = []
process.on('SIGINT', () => {
  const listener = interruptListeners.at(-1)
  if (listener) listener()
  // A second interrupt ends a command that does not end by itself.
  else if (leaving.signal.aborted) process.exit(130)
  else leaving.abort(new Error('interrupted'))
})
// The reader of a pipe, such as `head`, may leave before the last line; the command then ends without an error.
process.stdout.on('error', () => process.exit(0))

process.exitCode = await runCli(process.argv.slice(2), {
  // The stream is opened by its first reader, because commands that read a whole file from it need it untouched.
  get input() {
    return process.stdin
  },
  env: process.env,
  home: homedir(),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  isInteractive: process.stderr.isTTY === true,
  ...(process.stderr.columns !== undefined && { columns: process.stderr.columns }),
  ...(process.stdout.isTTY && process.stdout.columns > 0 && { width: process.stdout.columns }),
  signal: leaving.signal,
  openBrowser,
  ...(process.stdin.isTTY && process.stdout.isTTY && { readLine }),
  onInterrupt: (listener) => {
    interruptListeners.push(listener)
    return () => void interruptListeners.splice(interruptListeners.lastIndexOf(listener), 1)
  },
})
