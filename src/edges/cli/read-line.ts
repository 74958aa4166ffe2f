import { createInterface } from 'node:readline'

/**
 * Reads a line with the keys of a shell. The terminal is back in its usual mode after each line, so that Ctrl-C during
 * an answer is a signal, as it is for any other command.
 */
export function readLine(prompt: string, history: string[]): Promise<string | undefined> {
  const lines = createInterface({
    input: process.stdin,
    output: process.stdout,
    terminal: true,
    history,
    historySize: 500,
    removeHistoryDuplicates: true,
    prompt,
  })
  return new Promise((resolve) => {
    let line: string | undefined
    lines.on('history', (all: string[]) => history.splice(0, history.length, ...all))
    lines.on('line', (text) => {
      line = text
      lines.close()
    })
    lines.on('SIGINT', () => {
      if (lines.line === '') return lines.close()
      process.stdout.write('^C\n')
      lines.write(null, { ctrl: true, name: 'e' })
      lines.write(null, { ctrl: true, name: 'u' })
    })
    lines.on('close', () => {
      if (line === undefined) process.stdout.write('\n')
      resolve(line)
    })
    lines.prompt()
  })
}
