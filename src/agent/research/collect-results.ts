import { setImmediate } from 'node:timers/promises'
import type { ToolResult, Tools } from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { historyIn } from '#market/market-data.ts'

export type Wanted = { id: string; name: string; input: JsonObject; about: string }
export type Collected = Wanted & { result: ToolResult }

const parallelMax = 8

/** Makes eight calls at a time. A failed call is also a result; after the signal no further call begins. */
export async function collect(
  tools: Pick<Tools, 'call'>,
  wanted: readonly Wanted[],
  signal: AbortSignal,
): Promise<Collected[]> {
  const found = new Map<string, Collected>()
  const waiting = [...wanted]
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next && !signal.aborted; next = waiting.shift()) {
      const { id, name, input } = next
      found.set(id, { ...next, result: await tools.call({ id, name, input }) })
    }
  }
  await Promise.all(Array.from({ length: Math.min(parallelMax, wanted.length) }, work))
  return wanted.flatMap(({ id }) => found.get(id) ?? [])
}

/** Computes the indicators of one history after the other, and yields to other runs in between. */
export async function readHistories(collected: readonly Collected[]): Promise<void> {
  for (const { result } of collected) if (result.ok && historyIn(result.output)) await setImmediate()
}
