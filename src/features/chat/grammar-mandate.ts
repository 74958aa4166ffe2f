import type { Names } from '#grammar/asset-and-chain-names.ts'
import { mandateOf, permits, used } from '#grammar/mandate.ts'
import { isOrdered, ownOrders } from '#grammar/own-orders.ts'
import { inputsOf } from '#grammar/plan.ts'
import type { Registry } from '#grammar/registry.ts'
import type { Outputs, StepOutput } from '#grammar/step-outputs.ts'
import { readTurn, stateOf, stepOutputOf } from '#grammar/turn.ts'
import type { Understanding } from '#grammar/understanding.ts'
import type { ToolCall } from '#kernel/wire/answerer.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import { type OpenOwnWords, reducing, startable } from './call-starter.ts'
import type { MadeCall, OpenMandate } from './mandate.ts'

/** Allows the calls that the user's own words name, each once. */
export const grammarMandate =
  (registryOf: () => Promise<Registry>): OpenMandate =>
  async (turn) => {
    const registry = await registryOf()
    const understanding = readTurn(turn, registry)
    let mandate = mandateOf(understanding, registry)
    return {
      isListed: (text) => isListedName(text, registry.names),
      take({ id, name, input, isFromModel = false }, made) {
        const outputs = isFromModel
          ? outputsAsPlanned(understanding, made, registry)
          : outputsBefore(id, made)
        const verdict = permits(mandate, { operation: name, input }, { names: registry.names, outputs })
        if (verdict.allowed) mandate = used(mandate, verdict.at)
        return verdict.allowed
      },
    }
  }

export const grammarOwnWords =
  (registryOf: () => Promise<Registry>): OpenOwnWords =>
  async (turn) => {
    const registry = await registryOf()
    const orders = ownOrders(turn.query, { nowMs: turn.askedAt.getTime(), state: stateOf(turn) }, registry)
    const toProposal = ({ name: operation, input }: ToolCall) => ({ operation, input })
    return {
      order: (call, { made, begun }) =>
        isOrdered(
          orders,
          toProposal(call),
          {
            made: made.map((each) => ({
              proposal: toProposal(each.call),
              output: stepOutputOf(each.call, each.result),
            })),
            begun: begun.map(toProposal),
          },
          registry,
        ),
    }
  }

/** Returns the operations that a message starts by itself in a run; those that spend need the limit for chats. */
export function orderedOperations(text: string, nowMs: number, registry: Registry) {
  const ordered = ownOrders(text, { nowMs, state: {} }, registry).map(({ step }) => step.operation)
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
