import type { Names } from '#grammar/asset-and-chain-names.ts'
import { mandateOf, permits, used } from '#grammar/mandate.ts'
import type { Registry } from '#grammar/operation-registry.ts'
import { isOrdered, type OwnOrder, ownOrders } from '#grammar/own-orders.ts'
import { readTurn } from '#grammar/read-turn.ts'
import { inputsOf } from '#grammar/resolve-plan.ts'
import { type Outputs, type StepOutput, stepOutputOf } from '#grammar/step-outputs.ts'
import type { Understanding } from '#grammar/understanding.ts'
import type { ToolCall, Turn } from '#kernel/wire/chat-answerer.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import { reducing, startable } from './call-starter.ts'
import type { MadeCall, Mandate } from './mandate.ts'

/** Reads what the user's own words name: the calls that they allow, each once, and those that they order. */
export function grammarMandate(turn: Turn, registry: Registry): Mandate {
  const { understanding } = readTurn(turn, registry)
  const { names } = registry
  let mandate = mandateOf(understanding, registry)
  let own: readonly OwnOrder[] | undefined
  return {
    isListed: (text) => isListedName(text, names),
    take({ id, name, input, isFromModel = false }, made) {
      const outputs = isFromModel ? outputsAsPlanned(understanding, made, registry) : outputsBefore(id, made)
      const verdict = permits(mandate, { operation: name, input }, { names, outputs })
      if (verdict.allowed) mandate = used(mandate, verdict.at)
      return verdict.allowed
    },
    orders(call, { made, begun }) {
      own ??= ownOrders(turn.query, { nowMs: turn.askedAt.getTime(), understanding }, registry)
      const answered = made.map((each) => ({
        proposal: toProposal(each.call),
        output: stepOutputOf(each.call, each.result),
      }))
      return isOrdered(own, toProposal(call), { made: answered, begun: begun.map(toProposal) }, registry)
    },
  }
}

const toProposal = ({ name: operation, input }: ToolCall) => ({ operation, input })

/** Returns the operations that a message starts by itself in a run; those that spend need the limit for chats. */
export function orderedOperations(text: string, nowMs: number, registry: Registry) {
  const ordered = ownOrders(text, { nowMs }, registry).map(({ step }) => step.operation)
  return {
    operations: ordered.filter((operation) => startable.has(operation) || reducing.has(operation)),
    isSpending: ordered.some((operation) => startable.has(operation)),
  }
}

const isListedName = (text: string, { universe, bySymbol }: Names): boolean =>
  bySymbol.has(text.toLowerCase()) ||
  universe.assets.some(({ name }) => name === text) ||
  universe.chains.some(({ name, displayName }) => name === text || displayName === text)

/** Returns the outputs of those calls of a model that equal the calls the grammar would make. */
function outputsAsPlanned(
  { intents }: Understanding,
  made: readonly MadeCall[],
  { names }: Pick<Registry, 'names'>,
): Outputs {
  const outputs: Record<string, StepOutput> = {}
  for (const { steps, slots } of intents)
    for (const step of steps) {
      const planned = inputsOf(step, { slots, names, outputs })
      if (planned.state !== 'ready') continue
      const [input, ...others] = planned.inputs.map(canonicalJson)
      const found = made.findLast(
        ({ call }) => call.name === step.operation && canonicalJson(call.input) === input,
      )
      if (found && others.length === 0) outputs[step.id] ??= stepOutputOf(found.call, found.result)
    }
  return outputs
}

/** Returns the outputs of earlier calls of the intent; the id of a call begins with the number of its intent. */
function outputsBefore(id: string, made: readonly MadeCall[]): Outputs {
  const prefix = `${id.split('.', 1)[0]}.`
  const ofIntent = made.filter(({ call }) => call.id.startsWith(prefix))
  return Object.fromEntries(
    ofIntent.map(({ call, result }) => [call.id.slice(prefix.length), stepOutputOf(call, result)]),
  )
}
