import type { ReadAnswerer } from '#agent/grammar-answerer.ts'
import { memoryAfter } from '#grammar/read-turn.ts'
import type { Usage } from '#kernel/money/model-token-prices.ts'
import type {
  Agent,
  Emit,
  PastMessage,
  StopReason,
  ToolDescription,
  Tools,
  Turn,
  TurnEnd,
} from '#kernel/wire/chat-answerer.ts'
import type { Model } from '#upstreams/model/model.ts'
import type { ModelMessage, ModelRequest } from '#upstreams/model/turn.ts'
import { askModel, charactersOf, type ModelNote, type ModelSession } from './ask-model.ts'
import { callTools } from './call-tools.ts'
import { chooseTools } from './choose-tools.ts'
import { instructions } from './instructions.ts'
import { citationsOf, createKnownFigures, markUnknown } from './known-figures.ts'
import {
  addUsage,
  announcedMax,
  answerCharactersMax,
  type ModelAnswererLimits,
  modelTurnsMax,
  requestCharactersMax,
  tokensWithin,
} from './limits.ts'

/**
 * This answerer uses a language model, which plans and writes. The model has no authority: its calls are checked where
 * they are made, and its numbers where they are sent. The grammar answers if the model does not.
 */

export type ModelAnswererDeps = {
  model: Readonly<Record<Agent, Pick<Model, 'turn'>>>
  grammar: ReadAnswerer
  limits: ModelAnswererLimits
}

type Run = {
  turn: Turn
  session: ModelSession
  offered: ReadonlyMap<string, ToolDescription>
  messages: ModelMessage[]
  counts: { calls: number; changes: number; announced: number }
  proposed: string[]
  started: string[]
  usage: Usage
  limits: ModelAnswererLimits
}
/** How the model's answer ended; `away` means that the model has answered nothing usable. */
type Ended = { type: 'answered'; stopReason: StopReason } | { type: 'away'; why: string }

const atOnce = 'It was started at once, within what chats may start by themselves.'
const waits = 'It waits for you: accept the recommendation to start it, or decline it.'
const broken = 'The answer ends here: the language model does not answer any more.'
const outOfCredits = 'The answer ends here: the credits that are held for it are used up.'
const outOfTurns = 'The answer ends here: it has taken as many steps as it may.'

export function createModelAnswerer({ model, grammar, limits }: ModelAnswererDeps): ReadAnswerer {
  return {
    async run(reading, tools, emit, signal): Promise<TurnEnd> {
      const { turn } = reading
      const [described, history] = await Promise.all([tools.describe(), tools.history()])
      const offered = chooseTools(reading, described)
      const run = startRun(
        { turn, tools, emit, signal },
        { model: model[turn.agent], offered, history, limits },
      )
      const { session } = run
      emit.planning('plan_started', { id: 'model', text: 'answer with a language model' })
      const ended = await answer(run).catch((error: unknown): Ended => {
        // A stopped turn also pays for the request under way, and its answer ends with the text that was sent so far.
        if (!signal.aborted) throw error
        run.usage = addUsage(run.usage, session.pending)
        return { type: 'answered', stopReason: 'end' }
      })
      if (ended.type === 'away') {
        const text = `The language model does not answer (${ended.why}): the grammar takes over`
        emit.planning('plan_step', { id: 'fallback', text })
        emit.planning('plan_finished', { id: 'model', text: 'Done' })
        return { ...(await grammar.run(reading, tools, emit, signal)), usage: run.usage }
      }
      if (run.started.length > 0 && !signal.aborted)
        await session.emit.chunk(`\n\n${atOnce}${run.started.join('')}`)
      if (run.proposed.length > 0 && !signal.aborted) await session.emit.chunk(`\n\n${waits}`)
      emit.planning('plan_finished', { id: 'model', text: 'Done' })
      return {
        stopReason: ended.stopReason,
        usage: run.usage,
        citations: citationsOf(session.said(), session.figures),
        memory: memoryAfter(reading, { proposed: run.proposed }),
      }
    },
  }
}

type Setting = { turn: Turn; tools: Tools; emit: Emit; signal: AbortSignal }
type Parts = {
  model: Pick<Model, 'turn'>
  offered: readonly ToolDescription[]
  history: readonly PastMessage[]
  limits: ModelAnswererLimits
}

function startRun({ turn, tools, emit, signal }: Setting, { model, offered, history, limits }: Parts): Run {
  const figures = createKnownFigures()
  for (const { text } of [...history, { text: turn.query }]) figures.addSaid(text)
  let said = ''
  const counted: Emit = {
    planning: emit.planning,
    chunk(text) {
      said += text
      return emit.chunk(text)
    },
  }
  return {
    turn,
    session: {
      model,
      tools,
      emit: counted,
      signal,
      figures,
      said: () => said,
      saidBefore: turn.said,
      pending: { inputTokens: 0, outputTokens: 0 },
    },
    offered: new Map(offered.map((tool) => [tool.name, tool])),
    messages: [
      ...history.map(
        ({ role, text }): ModelMessage => (role === 'user' ? { role, text } : { role, text, calls: [] }),
      ),
      { role: 'user', text: turn.query },
    ],
    counts: { calls: 0, changes: 0, announced: 0 },
    proposed: [],
    started: [],
    usage: { inputTokens: 0, outputTokens: 0 },
    limits,
  }
}

/** Asks for one answer of the model after the other, until an answer makes no more calls. */
async function answer(run: Run): Promise<Ended> {
  const { session, turn } = run
  const hasSaid = () => session.said() !== ''
  for (let n = 1; n <= modelTurnsMax[turn.agent]; n++) {
    session.signal.throwIfAborted()
    const request = requestOf(run)
    if (!request) return stopped(run, outOfCredits, 'credits')
    const note = await askModel(session, { name: `turn:${n}`, request, mode: 'hold' })
    run.usage = addUsage(run.usage, note.usage)
    if (note.failure !== '') return interrupted(run, note.failure)
    if (note.calls.length === 0) {
      if (!hasSaid() && note.rest === '') return interrupted(run, 'it says nothing')
      if (note.rest !== '') await correct(run, note, n)
      return { type: 'answered', stopReason: note.stop === 'length' ? 'length' : 'end' }
    }
    await sendMarked(run, note.rest)
    await call(run, note, n)
  }
  return stopped(run, outOfTurns, 'length')
}

async function stopped({ session }: Run, sentence: string, stopReason: StopReason): Promise<Ended> {
  await session.emit.chunk(session.said() === '' ? sentence : `\n\n${sentence}`)
  return { type: 'answered', stopReason }
}

/** The grammar takes over only if the model has said nothing and asked for no change, so no effect happens twice. */
async function interrupted(run: Run, why: string): Promise<Ended> {
  if (run.session.said() === '' && run.counts.changes === 0) return { type: 'away', why }
  return stopped(run, broken, 'end')
}

async function sendMarked({ session }: Run, text: string): Promise<void> {
  if (text === '') return
  const marked = markUnknown(text, session.figures)
  const before = session.said()
  if (before.length + marked.length > answerCharactersMax) return
  const isContinued = before === '' || /^\s/.test(marked)
  await session.emit.chunk(before === '' ? marked.trimStart() : isContinued ? marked : `\n\n${marked}`)
}

/** Asks once more for the part whose numbers are in no result; numbers that are still unknown then are marked. */
async function correct(run: Run, { said, rest, calls }: ModelNote, n: number): Promise<void> {
  const { session, messages } = run
  const unknown = session.figures.unknownIn(rest).map(({ text }) => text)
  const text = `These numbers are in no result of a tool: ${[...new Set(unknown)].slice(0, 20).join(', ')}. Write the following part of your answer again, alone, with numbers of results only or without numbers: ${rest.trim()}`
  messages.push({ role: 'assistant', text: said + rest, calls }, { role: 'user', text })
  const request = requestOf(run)
  if (!request) return sendMarked(run, rest)
  const note = await askModel(session, {
    name: `turn:${n}.again`,
    request: { ...request, isTextOnly: true },
    mode: 'mark',
  })
  run.usage = addUsage(run.usage, note.usage)
  if (note.said === '') await sendMarked(run, rest)
}

async function call(run: Run, { said, rest, calls }: ModelNote, n: number): Promise<void> {
  const { session, messages, offered, counts, proposed, started } = run
  for (const [at, { name }] of calls.entries())
    if (offered.has(name) && counts.announced++ < announcedMax)
      session.emit.planning('plan_step', { id: callId(n, at), text: name.replaceAll('_', ' ') })
  const results = await callTools(
    { tools: session.tools, offered, figures: session.figures, counts, proposed, started },
    calls,
    (at) => callId(n, at),
  )
  const made = calls.map(({ input: _, problem: __, ...made }) => made)
  messages.push({ role: 'assistant', text: said + rest, calls: made }, ...results)
}

const callId = (n: number, at: number): string => `model:${n}.${at + 1}`
const omitted = JSON.stringify({ omitted: 'an earlier result' })

/** Builds the next request within the credits that are held for the turn; returns undefined if they are used up. */
function requestOf({ messages, offered, turn, usage, limits }: Run): ModelRequest | undefined {
  const tools = [...offered.values()].map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema,
  }))
  const request: ModelRequest = { instructions, tools, messages: withinBounds(messages) }
  const tokensMax = tokensWithin(charactersOf(request), { creditsMax: turn.creditsMax, used: usage, limits })
  return tokensMax === undefined ? undefined : { ...request, tokensMax }
}

function withinBounds(messages: readonly ModelMessage[]): ModelMessage[] {
  const found = [...messages]
  let characters = JSON.stringify(found).length
  for (const [at, message] of found.entries()) {
    if (characters <= requestCharactersMax) break
    if (message.role !== 'tool') continue
    found[at] = { ...message, text: omitted }
    characters -= message.text.length
  }
  return found
}
