#!/usr/bin/env node
import { homedir } from 'node:os'
import { runCli } from './cli.ts'
import { openBrowser } from './open-browser.ts'

const leaving = new AbortController()
process.once('SIGINT', () => leaving.abort(new Error('interrupted')))
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
  signal: leaving.signal,
  openBrowser,
})
