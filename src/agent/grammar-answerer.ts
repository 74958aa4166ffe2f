import { type Answer, answerOf } from '#grammar/answer.ts'
import { questionText } from '#grammar/clarifying-question.ts'
import type { PlanStep } from '#grammar/intent-frame.ts'
import { changes } from '#grammar/operation-registry.ts'
import { memoryAfter, type TurnReading } from '#grammar/read-turn.ts'
import { inputsOf } from '#grammar/resolve-plan.ts'
import { type Outputs, type StepOutput, stepOutputOf } from '#grammar/step-outputs.ts'
import type { Ask, Intent, Understanding } from '#grammar/understanding.ts'
import type { Citation, Emit, ToolCall, Tools, TurnEnd } from '#kernel/wire/chat-answerer.ts'
import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import { startedText } from './started-task-text.ts'

/** An answerer of turns that were read. */
export type ReadAnswerer = {
  run(reading: TurnReading, tools: Tools, emit: Emit, signal: AbortSignal): Promise<TurnEnd>
}
type Run = Pick<TurnReading, 'turn' | 'registry'> & { tools: Tools; emit: Emit; signal: AbortSignal }

export const grammarAnswerer: ReadAnswerer = {
  async run({ turn, understanding, registry }, tools, emit, signal) {
    const run: Run = { turn, registry, tools, emit, signal }
    const said = createSaid(emit)
    if (understanding.intents.length > 0)
      emit.planning('plan_started', { id: 'plan', text: planText(understanding) })
    const proposed: Proposed[] = []
    const started: Started[] = []
    let earlier: Outputs = {}
    let asked = understanding.ask
    for (const [at, intent] of understanding.intents.entries()) {
      if (signal.aborted) break
      const { outputs, open } = await perform(run, { intent, at, earlier, proposed, started })
      await said.answer(answer(intent, outputs, run))
      if (open) {
        asked ??= open.ask ?? null
        await said.text(open.text)
      }
      earlier = { ...earlier, ...outputs }
    }
    if (understanding.intents.length > 0) emit.planning('plan_finished', { id: 'plan', text: 'Done' })
    for (const text of closingsOf({ ...understanding, ask: asked }, { proposed, started }))
      await said.text(text)
    if (said.isEmpty()) await said.text('There is nothing to do. Ask "what can you do" for what there is.')
    const memory = memoryAfter(
      { turn, understanding: { ...understanding, ask: asked } },
      { proposed: proposed.map(({ id }) => id), startedTaskId: started.at(-1)?.taskId },
    )
    return { stopReason: 'end', citations: said.citations, memory }
  },
}

const planText = ({ intents }: Understanding): string =>
  intents.map(({ name }) => name.replaceAll('_', ' ')).join(', then ')

type Performing = {
  intent: Intent
  at: number
  earlier: Outputs
  proposed: Proposed[]
  started: Started[]
}
type Started = { taskId: string; text: string }
/** A recommendation that was made; `reason` says why an ordered call was not started at once. */
type Proposed = { id: string; reason?: string }
type Open = { text: string; ask?: Ask }

/**
 * Runs the steps of an intent one after the other, reads before changes. After a failure no further call is made.
 */
async function perform(
  { turn, tools, emit, signal, registry }: Run,
  { intent, at, earlier, proposed, started }: Performing,
): Promise<{ outputs: Outputs; open?: Open }> {
  const outputs: Record<string, StepOutput> = {}
  const { slots } = intent
  const nowMs = turn.askedAt.getTime()
  for (const step of intent.steps) {
    if (signal.aborted) break
    const calls = inputsOf(step, { slots, names: registry.names, outputs, earlier, nowMs })
    if (calls.state === 'skipped') continue
    if (calls.state === 'problem') {
      const { problem } = calls
      if (problem.problem === 'stop') return { outputs, open: { text: problem.reason } }
      const { slot, question, choices } = problem
      const ask: Ask = { intent: intent.name, slots, slot, question, choices }
      return { outputs, open: { text: '', ask } }
    }
    for (const [n, input] of calls.inputs.entries()) {
      const output = await callStep({ tools, emit, registry }, { step, at, n, input })
      const proposal = proposalOf(output)
      if (proposal) proposed.push(proposal)
      else outputs[n === 0 ? step.id : `${step.id}.${n + 1}`] = output
      const task = changes(step, registry) ? startedTask(output) : undefined
      if (task) started.push(task)
      if (output.fault) return { outputs }
    }
  }
  return { outputs }
}

type StepCall = { step: PlanStep; at: number; n: number; input: JsonObject }

async function callStep(
  { tools, emit, registry }: Pick<Run, 'tools' | 'emit' | 'registry'>,
  { step, at, n, input }: StepCall,
): Promise<StepOutput> {
  const { operation } = step
  const id = `${at + 1}.${step.id}${n === 0 ? '' : `.${n + 1}`}`
  emit.planning('plan_step', { id, text: operation.replaceAll('_', ' ') })
  const call: ToolCall = { id, name: operation, input }
  const output = stepOutputOf(call, await tools.call(call))
  // A dry run is refused as the call itself would be.
  return output.fault && registry.operations.get(operation)?.kind !== 'read'
    ? { ...output, fault: { ...output.fault, isChange: true } }
    : output
}

const proposalOf = ({ output }: StepOutput): Proposed | undefined => {
  if (!isRecord(output) || typeof output.recommendation_id !== 'string') return undefined
  return {
    id: output.recommendation_id,
    ...(typeof output.reason === 'string' && { reason: output.reason }),
  }
}
/**
 * Returns the task that a call has started. The answer to a cancel also has a task id, but of a task that existed
 * before.
 */
const startedTask = ({ operation, output }: StepOutput): Started | undefined =>
  operation !== 'tasks_cancel' && isRecord(output) && typeof output.task_id === 'string'
    ? { taskId: output.task_id, text: startedText(output as JsonObject) }
    : undefined

const reasonTexts: Readonly<Record<string, string>> = {
  chat_per_day_usd: 'It is more than is left of what chats may start by themselves.',
  approval_required: 'It needs the approval of a person.',
  insufficient_scope: 'The access of this chat does not allow it.',
}

/**
 * Writes the answer to an intent. Ages are counted from the newest result, so that a repeated run writes the same.
 */
function answer(intent: Intent, outputs: Outputs, { turn, registry }: Run): Answer | undefined {
  if (intent.decision) return { text: decisionText, spans: [] }
  if (Object.keys(outputs).length === 0 && intent.steps.length > 0) return undefined
  const newestMs = Math.max(
    turn.askedAt.getTime(),
    ...Object.values(outputs).map(({ fetchedAtMs }) => fetchedAtMs),
  )
  return answerOf(intent, outputs, { nowMs: newestMs, names: registry.names })
}

const decisionText =
  'A chat accepts and declines nothing for you. Decide it yourself: the recommendation has its own button, on the command line /accept or /decline. Ask "what can you do" for what a chat does.'

type Ended = { proposed: readonly Proposed[]; started: readonly Started[] }

function closingsOf({ notes, ask, refusal }: Understanding, { proposed, started }: Ended): string[] {
  const reasons = new Set(proposed.flatMap(({ reason }) => reasonTexts[reason ?? ''] ?? []))
  const waits = started.length > 0 ? 'The rest waits' : 'It waits'
  const recommended = [
    ...(started.length > 0
      ? [
          `It was started at once, within what chats may start by themselves.${started.map(({ text }) => text).join('')}`,
        ]
      : []),
    ...reasons,
    ...(proposed.length > 0
      ? [`${waits} for you: accept the recommendation to start it, or decline it.`]
      : []),
  ]
  const question = ask ? [questionText(ask)] : []
  return [...recommended, ...notes.map(({ text }) => text), ...(refusal ? [refusal.text] : []), ...question]
}

function createSaid(emit: Emit) {
  let isEmpty = true
  const citations: Citation[] = []
  const text = async (part: string): Promise<void> => {
    if (part === '') return
    await emit.chunk(`${isEmpty ? '' : '\n'}${part}`)
    isEmpty = false
  }
  return {
    citations,
    isEmpty: () => isEmpty,
    text,
    async answer(part: Answer | undefined) {
      if (!part) return
      for (const { operation, pointers, fetchedAtMs } of part.spans)
        for (const pointer of pointers)
          if (citations.length < citationsMax)
            citations.push({
              n: citations.length + 1,
              tool: operation,
              pointer,
              fetched_at: new Date(fetchedAtMs).toISOString(),
            })
      await text(part.text)
    },
  }
}

const citationsMax = 200
