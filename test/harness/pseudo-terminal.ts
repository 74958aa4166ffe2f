/** Runs a command with a terminal of its own, as a person has it, and reads what is on the screen. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runCli } from '#edges/cli/cli.ts'
import { widthOf } from '#edges/cli/table-text.ts'
import { childEnvironment } from './child-environment.ts'

const main = fileURLToPath(new URL('../../src/edges/cli/main.ts', import.meta.url))
/** Runs a command with a terminal. */
const scriptProgram = '/usr/bin/script'
export const skipWithoutTerminal =
  process.platform === 'linux' && existsSync(scriptProgram) ? false : 'there is no script of util-linux'
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

export type Typist = {
  /** Everything that was written so far. */
  raw: string
  screen: string
  type: (text: string) => void
  stop: () => void
}
type Options = {
  columns: number
  env: Record<string, string>
  onScreen?: ((typist: Typist) => void) | undefined
}
export type Shown = { code: number | null; raw: string; screen: string; overflows: string[] }

/** Runs `portico` with these words. */
export async function porticoOnTerminal(
  words: readonly string[],
  { columns, env, onScreen }: Options,
): Promise<Shown> {
  const command = [process.execPath, main, ...words].map(quoted).join(' ')
  const child = spawn(
    scriptProgram,
    ['-qefc', `stty cols ${columns} rows 40; exec ${command}`, '/dev/null'],
    {
      env: { ...childEnvironment(), TERM: 'xterm', TZ: 'UTC', ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
    },
  )
  let raw = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text
    onScreen?.({
      raw,
      screen: readScreen(raw, columns).screen,
      type: (typed) => child.stdin.write(typed),
      stop: () => child.kill('SIGTERM'),
    })
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, raw, ...readScreen(raw, columns) }
}

/** Runs `portico` in this process, as if its output were a screen of that width. */
export async function porticoOnScreen(
  words: readonly string[],
  { columns, env }: Pick<Options, 'columns' | 'env'>,
): Promise<Shown> {
  let raw = ''
  const write = (text: string) => {
    raw += text.replaceAll('\n', '\r\n')
  }
  const code = await runCli(words, {
    env,
    home: '/nowhere',
    out: write,
    err: write,
    isInteractive: true,
    columns,
    width: columns,
    openBrowser: () => {},
    signal: AbortSignal.timeout(90_000),
  })
  return { code, raw, ...readScreen(raw, columns) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is how a cursor is moved.
const controls = /\u001b\[([\d;?]*)([A-Za-z])|\u001b[=>78]|[\s\S]/gu

/**
 * Moves a cursor as a terminal does. `overflows` has the lines that were longer than the screen, so that the terminal
 * had to break them.
 */
export function readScreen(raw: string, columns: number): { screen: string; overflows: string[] } {
  const lines: string[][] = [[]]
  const overflows: string[] = []
  let [row, column] = [0, 0]
  const put = (letter: string) => {
    const size = widthOf(letter)
    if (column + size > columns) {
      overflows.push((lines[row] ?? []).join('') + letter)
      row++
      column = 0
    }
    lines[row] ??= []
    lines[row]![column] = letter
    for (let next = 1; next < size; next++) lines[row]![column + next] = ''
    column += size
  }
  const move = (count: string, kind: string) => {
    const steps = Number(count || '1')
    if (kind === 'D') column = Math.max(0, column - steps)
    else if (kind === 'C') column += steps
    else if (kind === 'A') row = Math.max(0, row - steps)
    else if (kind === 'B') row += steps
    else if (kind === 'G') column = steps - 1
    else if (kind === 'K' || kind === 'J') {
      lines[row] = (lines[row] ?? []).slice(0, column)
      if (kind === 'J') lines.length = row + 1
    }
  }
  for (const [whole, count = '', kind] of raw.matchAll(controls)) {
    if (kind !== undefined) move(count, kind)
    else if (whole === '\r') column = 0
    else if (whole === '\b') column = Math.max(0, column - 1)
    else if (whole === '\n') {
      row++
      lines[row] ??= []
    } else if (!whole.startsWith('\u001b') && whole !== '\u0007') put(whole)
  }
  const screen = lines
    .map((line) =>
      Array.from(line, (letter) => letter ?? ' ')
        .join('')
        .trimEnd(),
    )
    .join('\n')
  return { screen, overflows }
}
