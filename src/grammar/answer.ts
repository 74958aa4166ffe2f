import { ageText, type Format } from '#kernel/money/figure-format.ts'
import type { Line } from './answer-lines.ts'
import type { Row } from './answer-row-filters.ts'
import type { Names } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import { faultText, sourceWords } from './fault-words.ts'
import { figure, type Origin, type Scope } from './figures.ts'
import { frameOf } from './frames.ts'
import { helpText } from './help-texts.ts'
import { isMutating } from './intent-frame.ts'
import { type Outputs, rowsAt, type StepOutput } from './step-outputs.ts'
import type { Intent } from './understanding.ts'

/**
 * An answer is made of literals without digits and of figures; each figure has the step and the JSON pointers that
 * it came from. So no number is printed that no operation answered.
 */
export type Span = Origin & { start: number; end: number }
export type Answer = { text: string; spans: readonly Span[] }

type Writer = { text: string; spans: Span[] }
const placeholder = /\{([^{}|]+)\|([a-z]+)\}/g

function write(writer: Writer, text: string, origin?: Origin): void {
  const start = writer.text.length
  writer.text += text
  if (origin) writer.spans.push({ start, end: writer.text.length, ...origin })
}

/**
 * Writes a line. A part in `[...]` is left out if a figure in it is unknown; elsewhere `unknown` is printed
 * instead.
 */
function writeLine(writer: Writer, template: string, scope: Scope): void {
  for (const part of template.split(/(\[[^\]]*\])/)) {
    const isOptional = part.startsWith('[')
    const text = isOptional ? part.slice(1, -1) : part
    const own: Writer = { text: writer.text, spans: [] }
    let at = 0
    let isKnown = true
    for (const hit of text.matchAll(placeholder)) {
      write(own, text.slice(at, hit.index))
      const found = figure(scope, hit[1] ?? '', (hit[2] ?? 'text') as Format)
      isKnown &&= found !== undefined
      if (found) write(own, found.text, found.origin)
      else write(own, 'unknown')
      at = hit.index + hit[0].length
    }
    write(own, text.slice(at))
    if (isOptional && !isKnown) continue
    writer.text = own.text
    writer.spans.push(...own.spans)
  }
}

const rowsMax = 10
type Context = { slots: Slots; names: Names; nowMs: number }

function rowsOf(
  line: Extract<Line, { rows: string }>,
  output: StepOutput,
  context: Context,
): { rows: Row[]; omitted: number } {
  const all = rowsAt(output.output, line.rows)
  const { slots } = context
  const found = all.filter(({ row }) => line.pick?.(row, context) ?? true)
  const sorted = line.sort ? line.sort(found, slots) : found
  const max = slots.count === undefined ? (line.max ?? rowsMax) : Math.min(Number(slots.count), rowsMax)
  if (line.isNewestAlone) return { rows: sorted.slice(0, 1), omitted: 0 }
  return { rows: sorted.slice(0, max), omitted: Math.max(0, sorted.length - max) }
}

const freshMs = 5_000

function writeAges(writer: Writer, outputs: Outputs, nowMs: number): void {
  for (const [step, { operation, fetchedAtMs, fault }] of Object.entries(outputs)) {
    if (fault || nowMs - fetchedAtMs < freshMs) continue
    write(writer, `${writer.text === '' ? '' : '\n'}As of `)
    write(writer, ageText(nowMs - fetchedAtMs), {
      step,
      operation,
      pointers: [''],
      formula: 'age',
      fetchedAtMs,
    })
    write(writer, ` ago (${sourceWords(operation)}).`)
  }
}

/** Returns the outputs of a step. A step that ran for several rows has its further outputs under `id.2`, `id.3`. */
const outputsOf = (outputs: Outputs, step: string): [string, StepOutput][] =>
  Object.entries(outputs).filter(([id]) => id === step || id.startsWith(`${step}.`))

/** Writes the sum over the picked rows, unless there is only one row, which is its own total. */
function writeTotal(
  writer: Writer,
  { total, pick, text, isOfOne = false, none }: Extract<Line, { total: string }>,
  scope: Omit<Scope, 'base'>,
): void {
  const rows = rowsAt(scope.output.output, total).filter(({ row }) => pick(row, scope))
  if (rows.length === 0 && none !== undefined) {
    write(writer, writer.text === '' ? '' : '\n')
    writeLine(writer, none, { ...scope, base: '' })
  }
  if (rows.length < (isOfOne ? 1 : 2)) return
  write(writer, writer.text === '' ? '' : '\n')
  writeLine(writer, text, { ...scope, base: total, picked: rows.map(({ at }) => at) })
}

function writePart(writer: Writer, line: Line, scope: Omit<Scope, 'base'>): void {
  const { step, output, slots } = scope
  const { operation, fetchedAtMs, fault } = output
  const newLine = () => write(writer, writer.text === '' ? '' : '\n')
  if (line.where?.(slots) === false) return
  if (fault) {
    newLine()
    write(writer, faultText(operation, fault), {
      step,
      operation,
      pointers: ['/detail'],
      formula: 'fault',
      fetchedAtMs,
    })
    return
  }
  if ('total' in line) {
    writeTotal(writer, line, scope)
    return
  }
  if (!('rows' in line)) {
    newLine()
    writeLine(writer, line.text, { ...scope, base: '' })
    return
  }
  const { rows, omitted } = rowsOf(line, output, scope)
  if (rows.length === 0 && line.none !== undefined) {
    newLine()
    writeLine(writer, line.none, { ...scope, base: '' })
  }
  for (const { at } of rows) {
    newLine()
    writeLine(writer, line.text, { ...scope, base: `${line.rows}/${at}` })
  }
  if (omitted === 0 || line.hidesRest) return
  newLine()
  write(writer, 'And ')
  write(writer, String(omitted), { step, operation, pointers: [line.rows], formula: 'count', fetchedAtMs })
  write(writer, ' more.')
}

/** Says how to choose the agent that answers an intent: the user does, because it costs more credits. */
function routeText(agent: string): string {
  const what = agent === 'ProDeepResearchAgent' ? 'Reports are written' : 'Charts and indicators are computed'
  return `${what} by another agent, for more credits. Choose ${agent} for the same question: on the command line with --agent ${agent}, in its dialogue with /agent ${agent}. Here you can ask "how did eth move this week".`
}

export function answerOf(
  { name, slots, route }: Pick<Intent, 'name' | 'slots' | 'route'>,
  outputs: Outputs,
  { nowMs, names }: { nowMs: number; names: Names },
): Answer {
  const writer: Writer = { text: '', spans: [] }
  const frame = frameOf(name)
  if (frame?.slots.includes('topic')) return { text: helpText(slots.topic), spans: [] }
  for (const line of frame?.answer ?? [])
    for (const [step, output] of outputsOf(outputs, line.step ?? frame?.plan?.[0]?.id ?? ''))
      writePart(writer, line, { step, output, slots, names, nowMs })
  writeAges(writer, outputs, nowMs)
  // An order without lines gets no text here, because its recommendation says what the order does.
  if (writer.text === '' && !(frame && isMutating(frame)))
    write(
      writer,
      route === undefined
        ? (frame?.talk ?? 'There is nothing to show. Ask "what can you do" for what there is.')
        : routeText(route),
    )
  return writer
}

/** Returns the digits of an answer that no figure covers: a correct answer has none. */
export function untracedNumbers({ text, spans }: Answer): string[] {
  return [...text.matchAll(/\d[\d.,]*/g)].flatMap((hit) =>
    spans.some(
      ({ start, end }) => start <= hit.index && hit.index + hit[0].replace(/[.,]+$/, '').length <= end,
    )
      ? []
      : [hit[0]],
  )
}
