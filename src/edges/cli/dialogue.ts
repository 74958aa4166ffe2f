import type { Portico } from '#sdk/client.ts'
import { PorticoError } from '#sdk/errors.ts'
import { printAnswer } from './call-operation.ts'
import { printable } from './cell-text.ts'
import { answerTo, type ChatInput } from './chat-answer.ts'
import { fileText, type Recommendation, recommendationText, resultsOf } from './chat-results.ts'
import { type ChatEvent, type ChatScreen, chatScreen, creditsText, planStep } from './chat-screen.ts'
import { readConfig, writeConfig } from './config-files.ts'
import { errorText } from './error-text.ts'
import { exitCodes } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

/** `portico chat` alone is a dialogue: one thread, with the lines of earlier dialogues at the arrow keys. */

const prompt = '> '
const help = `/accept [number]    accept what is recommended, and wait for its end
/decline [number]   decline it
/plan               what the last answer looked at
/new                begin a new thread
/agent [name]       who answers: ProAgent, MarketAnalyzerAgent, ProDeepResearchAgent
/help               these lines
Ctrl-C stops an answer; Ctrl-D or /quit ends. Arrow keys bring back earlier lines.
`
const waitMs = 60_000

type Turn = { steps: string[]; chatId: string; open: Recommendation[] }

export async function dialogue(
  terminal: Terminal,
  client: Portico,
  asked: Partial<ChatInput>,
): Promise<number> {
  const screen = chatScreen(terminal)
  const history = readHistory(terminal)
  let threadId = asked.thread_id
  let agent: string | undefined = asked.agent
  let turn: Turn = { steps: [], chatId: '', open: [] }
  screen.note('Ask, or say what to do; /help lists the commands.')
  const commands: Readonly<Record<string, (word: string, signal: AbortSignal) => Promise<void> | void>> = {
    '/help': () => terminal.out(help),
    '/plan': () => {
      for (const step of turn.steps) screen.note(step)
      if (turn.steps.length === 0) screen.note('the last answer made no plan')
    },
    '/new': () => {
      threadId = undefined
      turn = { steps: [], chatId: '', open: [] }
      screen.note('a new thread')
    },
    '/agent': (word) => {
      agent = word === '' ? undefined : word
      screen.note(agent === undefined ? 'the usual agent answers' : `${agent} answers from now on`)
    },
    '/accept': (word, signal) => decide(terminal, client, { turn, word, status: 'accepted', signal }),
    '/decline': (word, signal) => decide(terminal, client, { turn, word, status: 'declined', signal }),
  }
  const ask = async (query: string, signal: AbortSignal): Promise<void> => {
    const chosen = {
      ...(threadId !== undefined && { thread_id: threadId }),
      ...(agent !== undefined && { agent }),
    }
    const input = { query, ...chosen } as ChatInput
    const answered = await answer(input, { terminal, client, screen, signal })
    threadId = answered.threadId
    turn = answered
  }
  while (!terminal.signal.aborted) {
    const line = (await terminal.readLine?.(prompt, history))?.trim()
    if (line === undefined || line === '/quit' || line === '/exit') break
    if (line === '') continue
    writeHistory(terminal, history)
    const [first = '', word = ''] = line.split(/\s+/)
    const run = first.startsWith('/')
      ? commands[first]
      : (_: string, signal: AbortSignal) => ask(line, signal)
    if (run) await interruptible(terminal, (signal) => run(word, signal))
    else screen.note(`there is no ${first}; /help lists the commands`)
  }
  return exitCodes.success
}

/** Runs one line of a dialogue, which goes on after a refusal and after Ctrl-C. */
async function interruptible(
  terminal: Terminal,
  run: (signal: AbortSignal) => Promise<void> | void,
): Promise<void> {
  const interrupt = new AbortController()
  const release = terminal.onInterrupt?.(() => interrupt.abort(new Error('interrupted')))
  try {
    await run(AbortSignal.any([terminal.signal, interrupt.signal]))
  } catch (error) {
    if (error instanceof PorticoError) terminal.err(errorText(error, 'table'))
    else if (terminal.signal.aborted || !interrupt.signal.aborted) throw error
  } finally {
    release?.()
  }
}

type Deps = { terminal: Terminal; client: Portico; screen: ChatScreen; signal: AbortSignal }

async function answer(input: ChatInput, deps: Deps): Promise<Turn & { threadId: string }> {
  const { terminal, client, screen, signal } = deps
  const steps: string[] = []
  const { chatId, threadId } = await answerTo(input, { ...deps, print: foldedLines(screen, steps) })
  const { files, open } = await resultsOf(client, chatId, signal)
  for (const file of files) terminal.out(fileText(file))
  const isOne = open.length === 1
  for (const [at, each] of open.entries()) {
    const title = `Recommended${isOne ? '' : ` ${at + 1}`}: ${printable(each.title)}`
    terminal.out(recommendationText(each, terminal, title))
  }
  if (open.length > 0) screen.note(`/accept${isOne ? '' : ' <number>'} does it, /decline does not`)
  return { steps, chatId, threadId, open }
}

/** The plan is one line, which shows the present step, and at the end how many there were. */
function foldedLines(screen: ChatScreen, steps: string[]): (event: ChatEvent) => void {
  let isAnswering = false
  return (event) => {
    const step = planStep(event)
    if (step !== undefined) {
      steps.push(step)
      if (!isAnswering) screen.progress(step)
    } else if (event.event === 'chunk') {
      isAnswering = true
      screen.say(event.data.text)
    } else if (event.event === 'done') {
      screen.endProgress()
      screen.endLine()
      const { status, credits_used, credits_remaining } = event.data
      const plan =
        steps.length === 0 ? '' : `${steps.length} ${steps.length === 1 ? 'step' : 'steps'} (/plan), `
      screen.note(
        `${plan}${status === 'completed' ? '' : `${status}, `}${creditsText(credits_used, credits_remaining)}`,
      )
    }
  }
}

async function decide(
  terminal: Terminal,
  client: Portico,
  {
    turn,
    word,
    status,
    signal,
  }: { turn: Turn; word: string; status: 'accepted' | 'declined'; signal: AbortSignal },
): Promise<void> {
  const { open, chatId } = turn
  const chosen = open[word === '' && open.length === 1 ? 0 : Number(word) - 1]
  if (!chosen) {
    terminal.err(
      open.length === 0
        ? 'nothing is recommended\n'
        : `say which one: ${open.map((_, at) => `/${status === 'accepted' ? 'accept' : 'decline'} ${at + 1}`).join(', ')}\n`,
    )
    return
  }
  const { task_id } = await client.chat.decide({ chat_id: chatId, recommendation_id: chosen.id, status })
  turn.open = open.filter((each) => each !== chosen)
  if (task_id === null) return terminal.out(`${status}\n`)
  const task = await client.tasks.waitFor(task_id, { timeoutMs: waitMs, signal })
  await printAnswer(terminal, client, { answer: task, form: 'table' })
}

const historyFile = 'chat-history.json'
const linesMax = 500

/** The newest line comes first. */
function readHistory(terminal: Terminal): string[] {
  const { lines } = readConfig<{ lines: string[] }>(terminal, historyFile, 'portico chat') ?? {}
  return Array.isArray(lines) ? lines.filter((line) => typeof line === 'string').slice(0, linesMax) : []
}

const writeHistory = (terminal: Terminal, lines: readonly string[]): string =>
  writeConfig(terminal, historyFile, { lines: lines.slice(0, linesMax) })
