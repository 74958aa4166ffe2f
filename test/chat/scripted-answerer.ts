/** An answerer whose answer is written in the question. */
import { setTimeout as delay } from 'node:timers/promises'
import { Fault } from '#kernel/contract/fault.ts'
import type { Usage } from '#kernel/money/model-token-prices.ts'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

export type Line =
  | { plan: string }
  | { call: string; input?: JsonObject }
  | { say: string }
  /** The text, one character a chunk, so many milliseconds apart. */
  | { spell: string; everyMs?: number }
  /** Waits for the end of the turn. */
  | { hang: true }
  | { fail: 'fault' | 'bug' }
  /** A file of so many bytes, each of them this letter. */
  | { publish: string; bytes: number; letter?: string; type?: string }
  | { remember: JsonObject }
  /** Says what it remembers. */
  | { recall: true }
  /** Says how often the note was made, in all runs of the turn. */
  | { note: string; usage?: Usage; bytes?: number }
  /** Says what it is given. */
  | { show: 'tools' | 'history' | 'turn' }
  | { spend: Usage }

const made = new Map<string, number>()

export const script = (...lines: Line[]): string => JSON.stringify(lines)

export const scriptedAnswerer: Answerer = {
  async run(turn, tools, emit, signal) {
    let memory = turn.memory
    let usage: Usage | undefined
    const lines = JSON.parse(turn.query) as Line[]
    for (const [at, line] of lines.entries()) {
      if (signal.aborted) break
      if ('plan' in line) emit.planning('plan_step', { id: `step:${at}`, text: line.plan })
      if ('call' in line) {
        const result = await tools.call({ id: `call:${at}`, name: line.call, input: line.input ?? {} })
        await emit.chunk(result.ok ? `${line.call} ok. ` : `${line.call} ${result.code}. `)
      }
      if ('say' in line) await emit.chunk(line.say)
      if ('spell' in line)
        for (const letter of line.spell) {
          if (line.everyMs !== undefined) await delay(line.everyMs)
          await emit.chunk(letter)
        }
      if ('hang' in line)
        await new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => resolve(), { once: true }),
        )
      if ('publish' in line) {
        const { publish: name, bytes, letter = 'a', type: contentType = 'text/plain' } = line
        await tools.publish({ name, contentType, bytes: Buffer.alloc(bytes, letter) })
      }
      if ('fail' in line)
        throw line.fail === 'bug'
          ? new Error('a bug of the answerer')
          : new Fault('conflict', 'It cannot be answered')
      if ('remember' in line) memory = line.remember
      if ('recall' in line) await emit.chunk(JSON.stringify(turn.memory))
      if ('note' in line) {
        const key = `${turn.chatId} ${line.note}`
        const note = await tools.note(line.note, async () => {
          made.set(key, (made.get(key) ?? 0) + 1)
          return {
            count: made.get(key)!,
            text: 'x'.repeat(line.bytes ?? 0),
            ...(line.usage && { usage: { ...line.usage } }),
          }
        })
        await emit.chunk(`note ${note.count} of ${made.get(key)}. `)
      }
      if ('show' in line) {
        const { said, creditsMax } = turn
        const shown = {
          turn: { said, creditsMax },
          tools: await tools.describe(),
          history: await tools.history(),
        }
        await emit.chunk(JSON.stringify(shown[line.show]))
      }
      if ('spend' in line) usage = line.spend
    }
    return { stopReason: 'end', citations: [], memory, ...(usage && { usage }) }
  },
}
