/** The questions of the grammar through the answerer of a model that calls what the grammar plans: the same calls are allowed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grammarAnswerer } from '#agent/grammar-answerer.ts'
import { createModelAnswerer } from '#agent/model/model-answerer.ts'
import { grammarMandate } from '#features/chat/grammar-mandate.ts'
import type { MadeCall } from '#features/chat/mandate.ts'
import { changes } from '#grammar/operation-registry.ts'
import { readTurn } from '#grammar/read-turn.ts'
import { inputsOf } from '#grammar/resolve-plan.ts'
import type { ToolCall, ToolResult, Tools, Turn } from '#kernel/wire/chat-answerer.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import type { ModelEvent } from '#upstreams/model/turn.ts'
import { nowMs, questions, type Row, registry, stateAfter } from '../proof/agent/corpus.ts'

const tokens = { inputTokens: 10, outputTokens: 10 }

const turnOf = ({ text, thread = [] }: Row): Turn => ({
  chatId: 'chat',
  agent: 'ProAgent',
  query: text,
  askedAt: new Date(nowMs),
  memory: stateAfter(thread) as never,
  said: '',
  creditsMax: 5,
})

/** The calls of the plan that need no result of another one. */
const planned = (turn: Turn) =>
  readTurn(turn, registry).understanding.intents.flatMap(({ steps, slots, mood }) =>
    steps.flatMap((step) => {
      const inputs = inputsOf(step, { slots, names: registry.names, outputs: {} })
      if (inputs.state !== 'ready') return []
      const isChange = changes(step, registry)
      return inputs.inputs.map((input) => ({ name: step.operation, input, isChange, mood }))
    }),
  )

/** Records the calls, and judges those that change something as the runtime does. */
function recording(turn: Turn) {
  const mandate = grammarMandate(turn, registry)
  const calls: ToolCall[] = []
  const made: MadeCall[] = []
  const allowed: string[] = []
  const described = [...registry.operations].map(([name, { kind }]) => ({
    name,
    description: name,
    inputSchema: { type: 'object' },
    effect: kind === 'read' ? ('read' as const) : ('change' as const),
    hasDryRun: false,
  }))
  const tools: Tools = {
    note: (_, make) => make(),
    describe: async () => described,
    history: async () => [],
    publish: async () => undefined,
    async call(call) {
      calls.push(call)
      const isRead = registry.operations.get(call.name)?.kind === 'read' || call.input.dryrun === true
      if (!isRead && mandate.take(call, made)) allowed.push(call.name)
      const result: ToolResult = { ok: false, code: 'unavailable', message: 'away', fetchedAt: turn.askedAt }
      made.push({ call, result })
      return result
    },
  }
  return { tools, calls, allowed }
}

async function runOracle(row: Row) {
  const turn = turnOf(row)
  const { tools, calls, allowed } = recording(turn)
  const wanted = planned(turn)
  let answers = 0
  const oracle = {
    async *turn(): AsyncGenerator<ModelEvent, void> {
      answers += 1
      if (answers === 1)
        for (const [at, { name, input }] of wanted.entries())
          yield {
            type: 'tool_call',
            id: `call-${at}`,
            name,
            argumentsText: JSON.stringify(input),
            arguments: { isValid: true, value: input },
          }
      if (answers > 1 || wanted.length === 0) yield { type: 'text', text: 'Done.' }
      yield { type: 'usage', ...tokens }
      yield { type: 'stop', reason: answers === 1 && wanted.length > 0 ? 'tools' : 'end' }
    },
  }
  const model = { ProAgent: oracle, MarketAnalyzerAgent: oracle, ProDeepResearchAgent: oracle }
  const answerer = createModelAnswerer({
    model,
    grammar: grammarAnswerer,
    limits: { tokensMax: 500, prices: { in: '1', out: '1' } },
  })
  let text = ''
  const emit = {
    planning: () => undefined,
    async chunk(piece: string) {
      text += piece
    },
  }
  const end = await answerer.run(readTurn(turn, registry), tools, emit, new AbortController().signal)
  return { turn, wanted, calls, allowed, text, end }
}

const key = ({ name, input }: Pick<ToolCall, 'name' | 'input'>) => `${name} ${canonicalJson(input)}`

test('a model that plans as the grammar reaches every tool of the plan, and is allowed what the user said', async () => {
  const missed: string[] = []
  let changesSeen = 0
  let reads = 0
  for (const row of questions) {
    const { wanted, calls, allowed, text } = await runOracle(row)
    const said = [row.thread ?? [], row.text].flat().join(' // ')
    if (canonicalJson(calls.map(key).sort()) !== canonicalJson(wanted.map(key).sort()))
      missed.push(`${said}: called ${calls.map(key).join('; ')} for ${wanted.map(key).join('; ')}`)
    const orders = wanted.filter(({ isChange, mood }) => isChange && mood === 'do').map(({ name }) => name)
    if (canonicalJson([...allowed].sort()) !== canonicalJson(orders.sort()))
      missed.push(`${said}: allowed ${allowed.join(', ')} for ${orders.join(', ')}`)
    changesSeen += orders.length
    reads += wanted.length - orders.length
    assert.ok(text.startsWith('Done.'), said)
  }
  assert.ok(changesSeen > 50 && reads > 150, `${changesSeen} changes, ${reads} reads`)
  assert.equal(missed.slice(0, 20).join('\n'), '')
})

test('the thread remembers of an answer of the model what it remembers of one of the grammar', async () => {
  const rows = questions.filter(({ ask }) => ask !== undefined).slice(0, 40)
  assert.ok(rows.length > 10)
  for (const row of rows) {
    const { turn, end } = await runOracle(row)
    const { tools } = recording(turn)
    const emit = { planning: () => undefined, chunk: async () => undefined }
    const own = await grammarAnswerer.run(readTurn(turn, registry), tools, emit, new AbortController().signal)
    assert.deepEqual(end.memory?.pending, own.memory?.pending, row.text)
  }
})
