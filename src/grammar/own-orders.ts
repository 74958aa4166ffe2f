import { canonicalJson } from '#kernel/wire/json.ts'
import type { Slots } from './clause-reader.ts'
import type { PlanStep } from './intent-frame.ts'
import { type Proposal, permits } from './mandate.ts'
import { changes, type Registry } from './operation-registry.ts'
import { inputsOf } from './resolve-plan.ts'
import type { Outputs, StepOutput } from './step-outputs.ts'
import { understand } from './understand-message.ts'
import type { Understanding } from './understanding.ts'

/**
 * An own order is one that a message gives by itself. Only the message's own words count: nothing that the thread
 * remembers or a tool has read, and nothing that is quoted, asked, denied or attached.
 */

/** A step of a message that changes something, and the reading steps of its plan before it. */
export type OwnOrder = { step: PlanStep; reads: readonly PlanStep[]; slots: Slots }
/** A call that was made for the message, with its answer. */
export type Made = { proposal: Proposal; output: StepOutput }

const charactersMax = 200
/**
 * Letters, numbers and the marks of a plain sentence. A text with other marks may be pasted, quoted or disguised.
 */
const plainPattern = /^[A-Za-z0-9 .,!$%&+/'-]+$/
/** An apostrophe belongs to a word; any other single quote quotes something. */
const quotePattern = /(?<![A-Za-z])'|'(?![A-Za-z])/

export const isPlain = (text: string): boolean =>
  text.length <= charactersMax && plainPattern.test(text) && !quotePattern.test(text)

const ordersIn = ({ intents, notes, ask, refusal }: Understanding, registry: Registry): OwnOrder[] => {
  if (notes.length > 0 || ask !== null || refusal !== null) return []
  return intents
    .filter(({ mood }) => mood === 'do')
    .flatMap(({ steps, slots }) =>
      steps.flatMap((step, at) =>
        changes(step, registry)
          ? [{ step, slots, reads: steps.slice(0, at).filter((each) => !changes(each, registry)) }]
          : [],
      ),
    )
}

/**
 * Returns the orders that a message gives by its own words; none if these are not the orders that the message gives
 * within its thread.
 */
export function ownOrders(
  text: string,
  { nowMs, understanding }: { nowMs: number; understanding?: Understanding },
  registry: Registry,
): OwnOrder[] {
  if (!isPlain(text)) return []
  const own = ordersIn(understand(text, { nowMs, state: {} }, registry), registry)
  const inThread = understanding ? ordersIn(understanding, registry) : own
  return canonicalJson(own) === canonicalJson(inThread) ? own : []
}

/** Returns the outputs of the reads of an order, found among the calls by the operation and input of each read. */
function readFor({ reads, slots }: OwnOrder, made: readonly Made[], { names }: Registry): Outputs {
  const outputs: Record<string, StepOutput> = {}
  for (const step of reads) {
    const wanted = inputsOf(step, { slots, names, outputs })
    const [input, ...others] = wanted.state === 'ready' ? wanted.inputs : []
    if (input === undefined || others.length > 0) continue
    const found = made.findLast(
      ({ proposal, output }) =>
        proposal.operation === step.operation &&
        canonicalJson(proposal.input) === canonicalJson(input) &&
        !output.fault,
    )
    if (found) outputs[step.id] = found.output
  }
  return outputs
}

/** Returns one order for each row that a step runs for, such as each position; none before the rows are read. */
function ordersByRow(order: OwnOrder, made: readonly Made[], registry: Registry): OwnOrder[] {
  const { step, slots } = order
  if (step.each === undefined) return [order]
  const { names } = registry
  const calls = inputsOf(step, { slots, names, outputs: readFor(order, made, registry) })
  if (calls.state !== 'ready') return []
  const { id, operation } = step
  return calls.inputs.map((row) => {
    const input = Object.fromEntries(Object.entries(row).map(([field, value]) => [field, { value }]))
    return { step: { id, operation, input }, reads: [], slots }
  })
}

type Asked = { made: readonly Made[]; begun: readonly Proposal[] }

/**
 * Whether a message orders a proposed call in addition to the calls that were already begun for the message. Each order
 * allows one call, or one call for each row that it applies to.
 */
export function isOrdered(
  orders: readonly OwnOrder[],
  proposal: Proposal,
  { made, begun }: Asked,
  registry: Registry,
): boolean {
  const covers = (order: OwnOrder, { operation, input }: Proposal): boolean =>
    permits(
      [{ ...order, left: 1 }],
      { operation, input },
      { names: registry.names, outputs: readFor(order, made, registry) },
    ).allowed
  const left = orders
    .filter(({ step }) => step.operation === proposal.operation)
    .flatMap((order) => ordersByRow(order, made, registry))
  for (const each of begun.filter(({ operation }) => operation === proposal.operation)) {
    const at = left.findIndex((order) => covers(order, each))
    // A call that was begun uses up an order even if none of the orders covers the call now.
    left.splice(at < 0 ? left.length - 1 : at, 1)
  }
  return left.some((order) => covers(order, proposal))
}
