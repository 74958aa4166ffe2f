/** What each foreign client does at the MCP door: it lists, reads, swaps, waits for the task, and repeats the swap. */
import assert from 'node:assert/strict'
import { base } from '../journeys/world.ts'

type Json = Record<string, unknown>
export type ToolCall = { name: string; input: Json }

/** A model that plays a script: the texts of the tools so far decide its next call. */
export type Script = {
  next(texts: readonly string[]): ToolCall | undefined
  check(texts: readonly string[]): void
}

const read = (text: string | undefined): Json => {
  assert.ok(text !== undefined, 'the tool has answered')
  return JSON.parse(text) as Json
}
const errorIn = (text: string | undefined): { code?: string; retryable?: boolean; details?: Json } =>
  (read(text).error ?? {}) as Json

let dollars = 20
/** Each script swaps an amount of its own, so that no swap is a repetition of that of another client. */
export function swapScript(client: string): Script {
  const swap = {
    chain_id_in: base,
    token_in: 'USDC',
    token_out: 'WETH',
    amount_usd: String(dollars++),
  }
  const keyed = { ...swap, idempotency_key: `foreign-${client}` }
  const taskOf = (texts: readonly string[]) => read(texts[1]).task_id
  const steps: readonly ((texts: readonly string[]) => ToolCall)[] = [
    () => ({ name: 'wallets_holdings', input: {} }),
    () => ({ name: 'swap_execute', input: keyed }),
    (texts) => ({ name: 'tasks_wait', input: { task_id: taskOf(texts), timeout: 60 } }),
    () => ({ name: 'swap_execute', input: keyed }),
    () => ({ name: 'swap_execute', input: swap }),
    () => ({ name: 'tasks_list', input: { kind: 'swap', limit: 100 } }),
  ]
  return {
    next: (texts) => steps[texts.length]?.(texts),
    check(texts) {
      assert.equal(texts.length, steps.length, texts.join('\n'))
      const { holdings } = read(texts[0]) as { holdings: { symbol: string }[] }
      assert.ok(holdings.some(({ symbol }) => symbol === 'USDC'))
      const task = read(texts[2])
      assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], texts[2])
      assert.equal(read(texts[3]).task_id, task.task_id, 'the same key is the same task')
      const again = errorIn(texts[4])
      assert.deepEqual(
        [again.code, again.retryable, again.details?.task_id],
        ['possible_duplicate', false, task.task_id],
        texts[4],
      )
      const { items } = read(texts[5]) as { items: { task_id: string }[] }
      assert.equal(items.filter(({ task_id }) => task_id === task.task_id).length, 1)
    },
  }
}

/** Drives a client whose tools are called by hand. `call` resolves with the text of the tool, also of a refusal. */
export async function play(
  client: string,
  names: readonly string[],
  call: (name: string, input: Json) => Promise<string>,
): Promise<void> {
  assertListed(names)
  const { next, check } = swapScript(client)
  const texts: string[] = []
  for (let step = next(texts); step; step = next(texts)) texts.push(await call(step.name, step.input))
  check(texts)
}

export function assertListed(names: readonly string[]): void {
  for (const name of ['wallets_holdings', 'swap_execute', 'tasks_wait', 'find_operation'])
    assert.ok(names.includes(name), `${name} is listed: ${names.join()}`)
  assert.ok(names.length <= 31, `${names.length} tools`)
}

/** The text of a tool, whatever a framework makes of its content. */
export function textOfResult(output: unknown): string {
  if (typeof output === 'string') return output
  if (Array.isArray(output)) return output.map(textOfResult).join('')
  const { text, value, content } = output as { text?: unknown; value?: unknown; content?: unknown }
  return typeof text === 'string' ? text : textOfResult(content ?? value)
}
