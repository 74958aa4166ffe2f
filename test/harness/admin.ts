/** The operator's command line in a process of its own, as an operator runs it. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { bundleEnvironment } from './child-environment.ts'

const main = fileURLToPath(new URL('../../src/admin/admin.ts', import.meta.url))

export type CommandResult = { code: number | null; out: string; err: string; lines: string[] }

/** Without the environment of the machine, from the bundle of the run. */
export const spawnAdmin = (env: Record<string, string>, words: readonly string[]) =>
  spawn(process.execPath, [main, ...words], {
    env: { ...bundleEnvironment(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })

export async function admin(
  env: Record<string, string>,
  words: readonly string[],
  input = '',
): Promise<CommandResult> {
  const child = spawnAdmin(env, words)
  const chunks = { out: [] as Buffer[], err: [] as Buffer[] }
  child.stdout.on('data', (chunk: Buffer) => chunks.out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.err.push(chunk))
  child.stdin.end(input)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  const out = Buffer.concat(chunks.out).toString()
  const err = Buffer.concat(chunks.err).toString()
  return { code, out, err, lines: out.split('\n').filter(Boolean) }
}

export type LoggedAction = {
  id: string
  at: string
  actor: string
  command: string
  subject: string | null
  reason: string | null
  details: Record<string, unknown>
}

/** An operator named ann at one installation; a failed command fails the test. */
export function operatorOf(env: Record<string, string>) {
  const run = async (...words: string[]): Promise<CommandResult> => {
    const result = await admin(env, words)
    if (result.code !== 0)
      throw new Error(`admin ${words.join(' ')}: ${result.code}\n${result.out}${result.err}`)
    return result
  }
  const rows = async <R = Record<string, unknown>>(...words: string[]): Promise<R[]> =>
    (await run(...words, '--json', '--by', 'ann')).lines.map((line) => JSON.parse(line) as R)
  return {
    run,
    rows,
    /** A command that changes something, with its reason. */
    act: (why: string, ...words: string[]) => run(...words, '--by', 'ann', '--why', why),
    refusal: async (...words: string[]): Promise<string> => {
      const { code, err, out } = await admin(env, words)
      if (code !== 1) throw new Error(`admin ${words.join(' ')} did not fail: ${code} ${out}`)
      return err
    },
    log: (...words: string[]) => rows<LoggedAction>('log', ...words),
  }
}
export type Operator = ReturnType<typeof operatorOf>
