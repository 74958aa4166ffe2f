/** Parses the Prometheus text format and checks it by the rules of `promtool check metrics`. */

export type ScrapedSample = { name: string; labels: Readonly<Record<string, string>>; value: number }
export type Family = {
  name: string
  help: string | undefined
  type: string | undefined
  samples: ScrapedSample[]
}
export type Scrape = {
  families: ReadonlyMap<string, Family>
  /** The value of the only series with these labels; undefined where there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
}

const sampleForm = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/
const labelForm = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/gy
const numberForm = /^(?:[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/

const numberOf = (text: string): number => (text.endsWith('Inf') ? Number(`${text}inity`) : Number(text))

function labelsOf(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {}
  let end = 0
  for (const [whole, name = '', value = ''] of text.matchAll(labelForm)) {
    if (name in labels) throw new Error(`a label twice: ${line}`)
    labels[name] = value
    end += whole.length
  }
  if (end !== text.length) throw new Error(`not a list of labels: ${line}`)
  return labels
}

/** A series of a histogram or summary belongs to the family without its suffix. */
const familyOf = (name: string, families: ReadonlyMap<string, Family>): string => {
  const base = name.replace(/_(?:bucket|sum|count)$/, '')
  const type = families.get(base)?.type
  return type === 'histogram' || type === 'summary' ? base : name
}

/** Throws where the text is not valid: a scraper would drop the whole answer. */
export function parseMetrics(text: string): Scrape {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const families = new Map<string, Family>()
  const family = (name: string): Family => {
    const found = families.get(name) ?? { name, help: undefined, type: undefined, samples: [] }
    families.set(name, found)
    return found
  }
  const series = new Set<string>()
  let current: string | undefined
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) ?(.*)$/.exec(line) ?? []
    if (keyword) {
      const field = keyword === 'HELP' ? 'help' : 'type'
      const described = family(name)
      if (described[field] !== undefined) throw new Error(`${keyword} twice: ${line}`)
      if (described.samples.length > 0) throw new Error(`${keyword} after a sample: ${line}`)
      described[field] = rest
      current = name
      continue
    }
    if (line.startsWith('#')) continue
    const [, sampleName = '', labelText = '', value = ''] = sampleForm.exec(line) ?? []
    if (!numberForm.test(value)) throw new Error(`not a sample: ${line}`)
    const labels = labelsOf(labelText, line)
    const key = `${sampleName} ${JSON.stringify(Object.entries(labels).sort())}`
    if (series.has(key)) throw new Error(`a series twice: ${line}`)
    series.add(key)
    const owner = familyOf(sampleName, families)
    if (owner !== current) throw new Error(`a sample outside its family: ${line}`)
    family(owner).samples.push({ name: sampleName, labels, value: numberOf(value) })
  }
  const value: Scrape['value'] = (name, labels = {}) => {
    const found = families
      .get(familyOf(name, families))
      ?.samples.filter(
        (sample) =>
          sample.name === name &&
          Object.entries(labels).every(([label, wanted]) => sample.labels[label] === wanted),
      )
    if (found && found.length > 1) throw new Error(`${found.length} series of ${name}`)
    return found?.[0]?.value
  }
  return { families, value }
}

/** Units that make two metrics incomparable, each with its base unit. */
const otherUnits: Readonly<Record<string, string>> = {
  milliseconds: 'seconds',
  microseconds: 'seconds',
  nanoseconds: 'seconds',
  minutes: 'seconds',
  hours: 'seconds',
  days: 'seconds',
  bits: 'bytes',
  kilobytes: 'bytes',
  megabytes: 'bytes',
  kibibytes: 'bytes',
  mebibytes: 'bytes',
  gigabytes: 'bytes',
  percent: 'ratio',
  percentage: 'ratio',
  fahrenheit: 'celsius',
}
const abbreviations = new Set([
  's',
  'ms',
  'us',
  'ns',
  'sec',
  'b',
  'kb',
  'mb',
  'gb',
  'tb',
  'pb',
  'm',
  'h',
  'd',
])
const typesInNames = new Set(['gauge', 'counter', 'summary', 'histogram', 'untyped'])

/** One sentence for each rule that a family breaks; none for a valid one. */
export function problemsOf(scrape: Scrape): string[] {
  return [...scrape.families.values()].flatMap((family) => {
    const { name, help, type, samples } = family
    const words = name.split('_')
    const isCounter = type === 'counter'
    const isDistribution = type === 'histogram' || type === 'summary'
    const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)))
    const problems = [
      !help && 'no help text',
      !type && 'no type',
      isCounter && !name.endsWith('_total') && 'counter metrics should have "_total" suffix',
      !isCounter && name.endsWith('_total') && 'non-counter metrics should not have "_total" suffix',
      !isDistribution &&
        /_(?:count|sum|bucket)$/.test(name) &&
        'only histograms and summaries should end in "_count", "_sum" or "_bucket"',
      type !== 'histogram' && labels.has('le') && 'non-histogram metrics should not have "le" label',
      type !== 'summary' && labels.has('quantile') && 'non-summary metrics should not have "quantile" label',
      name.includes(':') && 'metric names should not contain ":"',
      /[a-z][A-Z]/.test(name) && 'metric names should be written in "snake_case"',
      [...labels].some((label) => /[a-z][A-Z]/.test(label)) &&
        'label names should be written in "snake_case"',
      words.some((word) => typesInNames.has(word)) && 'metric name should not include its type',
      words.some((word) => abbreviations.has(word)) && 'metric names should not contain abbreviated units',
      ...words.map((word) => otherUnits[word] && `use base unit "${otherUnits[word]}" instead of "${word}"`),
      ...(type === 'histogram' ? histogramProblems(family) : []),
    ]
    return problems.filter((each) => typeof each === 'string').map((problem) => `${name}: ${problem}`)
  })
}

/** Buckets of one series ascend, end with `+Inf`, and agree with its count. */
function histogramProblems({ name, samples }: Family): string[] {
  const bySeries = Map.groupBy(samples, ({ labels: { le: _, ...rest } }) => JSON.stringify(rest))
  return [...bySeries].flatMap(([series, own]) => {
    const buckets = own.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => numberOf(labels.le ?? ''))
    const counts = buckets.map(({ value }) => value)
    const ascends = (numbers: number[], isFine: (a: number, b: number) => boolean) =>
      numbers.every((number, at) => at === 0 || isFine(numbers[at - 1]!, number))
    const count = own.find((sample) => sample.name === `${name}_count`)?.value
    const isWhole =
      bounds.at(-1) === Number.POSITIVE_INFINITY &&
      ascends(bounds, (a, b) => a < b) &&
      ascends(counts, (a, b) => a <= b) &&
      counts.at(-1) === count &&
      own.some((sample) => sample.name === `${name}_sum`)
    return isWhole ? [] : [`the histogram of ${series} is incomplete`]
  })
}

const keywords = new Set(
  'and or unless by without on ignoring group_left group_right offset bool start end inf nan'.split(' '),
)

/** Names of the metrics that a PromQL expression reads. */
export function metricsOfExpression(expression: string): string[] {
  const bare = expression
    .replace(/"(?:[^"\\]|\\.)*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    // Lists of labels.
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, '')
  return [...bare.matchAll(/(?<![\w:$.])([a-zA-Z_:][\w:]*)\b(?!\s*\()/g)]
    .map(([name]) => name)
    .filter((name) => !keywords.has(name.toLowerCase()))
}
