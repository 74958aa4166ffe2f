/**
 * `npm run bench [-- part-of-a-name ...]`: every bench/*.bench.ts, one after another so that none disturbs the
 * next, and what they found as bench/results.json and as the table of docs/benchmarks.md.
 * A bench prints one JSON line per goal and may print anything else beside it.
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { arch, cpus, totalmem } from 'node:os'
import { cleanEnvironment, nodeFlags, root } from './environment.ts'

export type BenchResult = {
  id: string
  name: string
  goal: string
  ratio: number
  median: number
  min: number
  max: number
  runs: number
  verdict: 'met' | 'not met'
  annex?: Record<string, unknown>
}

const benchTimeoutMs = 15 * 60_000
const numbers = ['ratio', 'median', 'min', 'max', 'runs'] as const

/** Undefined for a line that is none; throws for one that is, and is not whole. */
export const readResult = (line: string): BenchResult | undefined => {
  if (!line.startsWith('{"id":')) return undefined
  const result: BenchResult = JSON.parse(line)
  const whole =
    [result.id, result.name, result.goal].every((text) => typeof text === 'string' && text !== '') &&
    numbers.every((key) => Number.isFinite(result[key])) &&
    (result.verdict === 'met' || result.verdict === 'not met')
  if (!whole) throw new Error(`a result that is not whole: ${line}`)
  return result
}

type Run = { file: string; results: BenchResult[]; failure?: string }

const runBench = (file: string): Promise<Run> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [...nodeFlags, `bench/${file}`], {
      cwd: root,
      env: cleanEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: benchTimeoutMs,
      killSignal: 'SIGKILL',
    })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      process.stdout.write(chunk)
    })
    child.on('close', (code, signal) => {
      const lines = Buffer.concat(chunks).toString().split('\n')
      try {
        const results = lines.flatMap((line) => readResult(line) ?? [])
        const ended = code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`
        const failure = ended ?? (results.length === 0 ? 'printed no result' : undefined)
        resolve({ file, results, ...(failure && { failure }) })
      } catch (cause) {
        resolve({ file, results: [], failure: cause instanceof Error ? cause.message : String(cause) })
      }
    })
  })

const figure = (value: number): string =>
  Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en-US') : Number(value.toPrecision(3)).toString()

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const annexText = (annex: Record<string, unknown> = {}): string =>
  Object.entries(annex)
    .map(([key, value]) => {
      if (typeof value === 'number') return `${key} ${figure(value)}`
      return `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`
    })
    .join('; ')

const table = (runs: Run[]): string[] => [
  '| id | what | goal | ratio | median | spread | runs | verdict |',
  '|---|---|---|---|---|---|---|---|',
  ...runs
    .flatMap((run) => run.results)
    .map((result) => {
      const { id, name, goal, ratio, median, min, max, runs: count, verdict } = result
      const spread = `${figure(min)} to ${figure(max)}`
      const cells = [id, name, goal, figure(ratio), figure(median), spread, String(count), verdict]
      return `| ${cells.map(cell).join(' | ')} |`
    }),
]

const markdown = (runs: Run[]): string => {
  const annexes = runs
    .flatMap((run) => run.results)
    .filter((result) => Object.keys(result.annex ?? {}).length > 0)
    .map((result) => `- **${result.id}** ${annexText(result.annex)}`)
  const failures = runs.filter((run) => run.failure).map((run) => `- ${run.file} ${run.failure}`)
  const machine = `${cpus().length} processors (${cpus()[0]?.model.trim() ?? arch()}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, ${process.platform}`
  return [
    '# Benchmarks',
    'Written by `npm run bench`. A goal is a ratio to a baseline that ran in the same process set; the absolute figures belong to one machine and are worth as much as it is.',
    '',
    `Machine: ${machine}.`,
    '',
    ...table(runs),
    ...(annexes.length > 0 ? ['', '## Absolute figures', ...annexes] : []),
    ...(failures.length > 0 ? ['', '## Did not finish', ...failures] : []),
    '',
  ].join('\n')
}

if (import.meta.main) {
  const wanted = process.argv.slice(2)
  const files = (existsSync(`${root}/bench`) ? readdirSync(`${root}/bench`) : [])
    .filter((name) => name.endsWith('.bench.ts'))
    .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
    .sort()
  const runs: Run[] = []
  for (const file of files) {
    console.log(`\n${file}`)
    runs.push(await runBench(file))
  }
  if (files.length > 0) writeFileSync(`${root}/bench/results.json`, `${JSON.stringify(runs, null, 2)}\n`)
  // A part of the benches must not overwrite the table of all.
  if (wanted.length === 0 && files.length > 0) writeFileSync(`${root}/docs/benchmarks.md`, markdown(runs))
  console.log(['', ...table(runs)].join('\n'))
  for (const { file, failure } of runs) if (failure) console.error(`${file} ${failure}`)
  const unmet = runs.flatMap((run) => run.results).filter((result) => result.verdict !== 'met')
  if (files.length === 0) console.error('no bench was found')
  if (files.length === 0 || unmet.length > 0 || runs.some((run) => run.failure)) process.exitCode = 1
}
