/**
 * `npm run bench [-- part-of-a-name ...]`: every bench/*.bench.ts, one after another so that none disturbs the next. The
 * growth of the database, which takes half an hour, runs only by its name. Writes the results to bench/results.json and, when all ran, to docs/generated/benchmarks.md. A bench prints one JSON line per
 * goal and may print other lines. One that prints a section has a section of its own in the document, which is replaced
 * whenever that bench runs.
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { arch, cpus, loadavg, totalmem } from 'node:os'
import { cleanEnvironment, nodeFlags, root } from './environment.ts'

export type BenchResult = {
  id: string
  name: string
  goal: string
  /** Where there is none, the figures are ratios to the baseline. */
  unit?: string
  ratio: number
  median: number
  min: number
  max: number
  runs: number
  verdict: 'met' | 'not met'
  annex?: Record<string, unknown>
}

const benchTimeoutMs = 15 * 60_000
/** Benches that build much before they measure. */
const longTimeoutsMs: Readonly<Record<string, number>> = {
  'growth.bench.ts': 120 * 60_000,
  'webhook-polls.bench.ts': 60 * 60_000,
}
const numbers = ['ratio', 'median', 'min', 'max', 'runs'] as const

/** Undefined for another line; throws for an incomplete result. */
export const readResult = (line: string): BenchResult | undefined => {
  if (!line.startsWith('{"id":')) return undefined
  const result: BenchResult = JSON.parse(line)
  const isComplete =
    [result.id, result.name, result.goal].every((text) => typeof text === 'string' && text !== '') &&
    numbers.every((key) => Number.isFinite(result[key])) &&
    (result.verdict === 'met' || result.verdict === 'not met')
  if (!isComplete) throw new Error(`an incomplete result: ${line}`)
  return result
}

export type Section = { title: string; about: string }
export type Run = {
  file: string
  results: BenchResult[]
  skipped: string[]
  section?: Section
  failure?: string
}

const readSection = (line: string): Section | undefined => {
  if (!line.startsWith('{"section":')) return undefined
  const { section: title, about }: { section: string; about: string } = JSON.parse(line)
  return { title, about }
}

/** Goals that a bench could not measure here, with the reason. */
const readSkipped = (line: string): string | undefined => {
  if (!line.startsWith('{"skipped":')) return undefined
  const { skipped, reason }: { skipped: string; reason: string } = JSON.parse(line)
  return `${skipped}: ${reason}`
}

const runBench = (file: string): Promise<Run> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [...nodeFlags, `bench/${file}`], {
      cwd: root,
      env: cleanEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: longTimeoutsMs[file] ?? benchTimeoutMs,
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
        const skipped = lines.flatMap((line) => readSkipped(line) ?? [])
        const section = lines.map(readSection).find((found) => found !== undefined)
        const ended = code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`
        const silent = results.length + skipped.length === 0
        const failure = ended ?? (silent ? 'printed no result' : undefined)
        resolve({ file, results, skipped, ...(section && { section }), ...(failure && { failure }) })
      } catch (cause) {
        resolve({
          file,
          results: [],
          skipped: [],
          failure: cause instanceof Error ? cause.message : String(cause),
        })
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

const measured = (value: number, unit?: string) => `${figure(value)}${unit ? ` ${unit}` : 'x'}`

const row = ({ id, name, goal, unit, median, min, max, runs, verdict }: BenchResult): string => {
  const spread = runs === 1 ? 'one run' : `${figure(min)} to ${figure(max)} in ${runs}`
  const cells = [id, name, goal, measured(median, unit), spread, verdict]
  return `| ${cells.map(cell).join(' | ')} |`
}

/** P2 before P11, in any order of files. */
const inOrder = (runs: Run[]): BenchResult[] =>
  runs
    .flatMap((run) => run.results)
    .sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true, sensitivity: 'base' }))

const table = (results: BenchResult[]): string[] => [
  '| id | what | goal | measured | spread | verdict |',
  '|---|---|---|---|---|---|',
  ...results.map(row),
]

/** Repeated in words, so that missed goals need no search in the table. */
const unmetLines = (results: BenchResult[]): string[] => {
  const unmet = results.filter(({ verdict }) => verdict !== 'met')
  if (unmet.length === 0) return ['Every goal is met.']
  return [
    `${unmet.length} of ${results.length} goals are not met:`,
    '',
    ...unmet.map(
      ({ id, name, goal, unit, median }) =>
        `- **${id}** ${name}: ${measured(median, unit)}, the goal is ${goal}.`,
    ),
  ]
}

const machineLine = (at: Date): string => {
  const [idle = 0] = loadavg()
  const machine = [
    `${cpus().length} processors (${cpus()[0]?.model.trim() ?? arch()})`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    `${process.platform} ${arch()}`,
    `Node ${process.version}`,
    `load at the end ${idle.toFixed(1)}`,
  ].join(', ')
  return `${at.toISOString().slice(0, 10)}. ${machine}.`
}

const annexLines = (results: BenchResult[]): string[] =>
  results
    .filter(({ annex = {} }) => Object.keys(annex).length > 0)
    .map(({ id, annex }) => `- **${id}** ${annexText(annex)}`)

/** Ends with an empty line, as the text before the next heading does. */
const sectionLines = (run: Run & { section: Section }, at: Date): string[] => {
  const results = inOrder([run])
  const annexes = annexLines(results)
  return [
    `## ${run.section.title}`,
    '',
    run.section.about,
    '',
    machineLine(at),
    '',
    ...table(results),
    ...(annexes.length > 0 ? ['', ...annexes] : []),
    '',
  ]
}

const hasSection = (run: Run): run is Run & { section: Section } => run.section !== undefined

/** The document with the sections of these runs in place of the old ones. */
export const withSections = (text: string, runs: Run[], at: Date): string =>
  runs.filter(hasSection).reduce((document, run) => {
    const lines = document.split('\n')
    const start = lines.indexOf(`## ${run.section.title}`)
    const from = start === -1 ? lines.length : start
    const next = lines.findIndex((line, index) => index > from && line.startsWith('## '))
    const rest = next === -1 ? [] : lines.slice(next)
    return [...lines.slice(0, from), ...sectionLines(run, at), ...rest].join('\n')
  }, text)

const tableSections = ['Absolute figures', 'Left out', 'Did not finish']

/** The sections of benches in a document of earlier runs. */
const benchSections = (document: string): string[] =>
  document
    .split(/^(?=## )/m)
    .slice(1)
    .filter((text) => !tableSections.some((title) => text.startsWith(`## ${title}\n`)))

/** `earlier`: the document before these runs. Sections of benches that did not run now stay. */
export const markdown = (all: Run[], at: Date, earlier = ''): string => {
  const runs = all.filter((run) => !hasSection(run))
  const results = inOrder(runs)
  const annexes = annexLines(results)
  const failures = all.filter((run) => run.failure).map((run) => `- ${run.file} ${run.failure}`)
  const skipped = all.flatMap((run) => run.skipped.map((line) => `- ${line}`))
  const document = [
    '# Benchmarks',
    '',
    'Written by `npm run bench`; not edited by hand. A goal is a ratio to a baseline that ran in turn with it in the same process set, so a machine that is slow or busy disturbs both alike; only sizes, and times that have no baseline, are absolute. The figure is the median of the runs.',
    '',
    machineLine(at),
    '',
    ...unmetLines(results),
    '',
    ...table(results),
    ...(annexes.length > 0
      ? ['', '## Absolute figures', '', 'They belong to the machine above.', '', ...annexes]
      : []),
    ...(skipped.length > 0 ? ['', '## Left out', '', ...skipped] : []),
    ...(failures.length > 0 ? ['', '## Did not finish', '', ...failures] : []),
    '',
    ...benchSections(earlier),
  ].join('\n')
  return withSections(document, all, at)
}

/** A part that is the whole name of a bench means no other one. */
const isWanted = (name: string, part: string, all: readonly string[]) =>
  all.includes(`${part}.bench.ts`) ? name === `${part}.bench.ts` : name.includes(part)

const documentPath = `${root}/docs/generated/benchmarks.md`

if (import.meta.main) {
  const wanted = process.argv.slice(2)
  const files = (existsSync(`${root}/bench`) ? readdirSync(`${root}/bench`) : [])
    .filter((name) => name.endsWith('.bench.ts'))
    .filter((name, _index, all) =>
      wanted.length === 0
        ? longTimeoutsMs[name] === undefined
        : wanted.some((part) => isWanted(name, part, all)),
    )
    .sort()
  const runs: Run[] = []
  for (const file of files) {
    console.log(`\n${file}`)
    runs.push(await runBench(file))
  }
  if (files.length > 0) writeFileSync(`${root}/bench/results.json`, `${JSON.stringify(runs, null, 2)}\n`)
  // A part of the benches must not overwrite the table of all.
  if (wanted.length === 0 && files.length > 0)
    writeFileSync(documentPath, markdown(runs, new Date(), readFileSync(documentPath, 'utf8')))
  else if (runs.some((run) => run.section && !run.failure)) {
    const whole = runs.filter(({ failure }) => !failure)
    writeFileSync(documentPath, withSections(readFileSync(documentPath, 'utf8'), whole, new Date()))
  }
  console.log(['', ...table(inOrder(runs))].join('\n'))
  for (const { file, failure } of runs) if (failure) console.error(`${file} ${failure}`)
  const unmet = runs.flatMap((run) => run.results).filter((result) => result.verdict !== 'met')
  if (files.length === 0) console.error('no bench was found')
  if (files.length === 0 || unmet.length > 0 || runs.some((run) => run.failure)) process.exitCode = 1
}
