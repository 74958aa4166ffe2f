import { startedText } from '#agent/started-task-text.ts'
import type { ToolCall, ToolDescription, ToolResult, Tools } from '#kernel/wire/chat-answerer.ts'
import { isRecord, type Json } from '#kernel/wire/json.ts'
import { shorten } from '#kernel/wire/shorten-json.ts'
import type { ModelMessage } from '#upstreams/model/turn.ts'
import type { NotedCall } from './ask-model.ts'
import { calculate, calculateTool } from './calculate.ts'
import { cleanValue } from './clean-text.ts'
import type { KnownFigures } from './known-figures.ts'
import { callsMax } from './limits.ts'

/** This module makes the calls of a model, and gives it their results as untrusted data. */

const dataBytesMax = 15 * 1_024

type CallsDeps = {
  tools: Pick<Tools, 'call'>
  offered: ReadonlyMap<string, ToolDescription>
  figures: KnownFigures
  counts: { calls: number; changes: number }
  proposed: string[]
  /** The texts about the tasks that the calls have started at once, in the words of the gateway. */
  started: string[]
}
type ResultMessage = Extract<ModelMessage, { role: 'tool' }>

const problemOf = ({ id: callId }: NotedCall, problem: string): ResultMessage => ({
  role: 'tool',
  callId,
  text: JSON.stringify({ error: problem }),
  isError: true,
})

const isChange = ({ effect, hasDryRun }: ToolDescription, { input }: NotedCall): boolean =>
  effect !== 'read' && !(hasDryRun && input.dryrun === true)

/** Calls that change something run first, one by one, so that nothing which the same answer reads can cause them. */
export async function callTools(
  deps: CallsDeps,
  calls: readonly NotedCall[],
  idOf: (at: number) => string,
): Promise<ResultMessage[]> {
  const results = new Map<number, ResultMessage>()
  const reads: [number, NotedCall, ToolDescription][] = []
  for (const [at, call] of calls.entries()) {
    const tool = deps.offered.get(call.name)
    if (!tool) {
      const names = [...deps.offered.keys()].join(', ')
      results.set(at, problemOf(call, `There is no tool of this name. The tools are ${names}.`))
    } else if (call.problem !== '') results.set(at, problemOf(call, call.problem))
    else if (tool === calculateTool) results.set(at, calculated(deps, call))
    else if (deps.counts.calls >= callsMax)
      results.set(at, problemOf(call, 'This answer has made as many calls as it may: answer now.'))
    else {
      deps.counts.calls += 1
      if (isChange(tool, call)) {
        deps.counts.changes += 1
        results.set(at, await callTool(deps, call, idOf(at)))
      } else reads.push([at, call, tool])
    }
  }
  await Promise.all(reads.map(async ([at, call]) => results.set(at, await callTool(deps, call, idOf(at)))))
  return calls.flatMap((_, at) => results.get(at) ?? [])
}

function calculated({ figures }: CallsDeps, call: NotedCall): ResultMessage {
  const result = calculate(call.input, figures)
  if ('problem' in result) return problemOf(call, result.problem)
  figures.addComputed(result.value)
  return {
    role: 'tool',
    callId: call.id,
    text: JSON.stringify({ tool: call.name, data: result }),
    isError: false,
  }
}

async function callTool(deps: CallsDeps, call: NotedCall, id: string): Promise<ResultMessage> {
  const { name, input } = call
  const made: ToolCall = { id, name, input, isFromModel: true }
  const result = await deps.tools.call(made)
  return { role: 'tool', callId: call.id, ...shownResult(deps, name, result), isError: !result.ok }
}

function shownResult(
  { figures, proposed, started }: CallsDeps,
  tool: string,
  result: ToolResult,
): { text: string } {
  const fetched_at = result.fetchedAt.toISOString()
  if (!result.ok) {
    const error = cleanValue({ code: result.code, message: result.message })
    return { text: JSON.stringify({ tool, fetched_at, untrusted: true, error }) }
  }
  const { output } = result
  if (isRecord(output) && typeof output.recommendation_id === 'string') {
    proposed.push(output.recommendation_id)
    const data = {
      status: 'open',
      meaning: 'The person can accept or decline it. It was not started.',
      ...(typeof output.reason === 'string' && { reason: output.reason }),
    }
    return { text: JSON.stringify({ tool, fetched_at, untrusted: false, data }) }
  }
  const text = startedText(output)
  if (text !== '') started.push(text)
  const data: Json = shorten(cleanValue(output), dataBytesMax)
  figures.addOutput(data, { tool, fetchedAt: result.fetchedAt })
  return { text: JSON.stringify({ tool, fetched_at, untrusted: true, data }) }
}
