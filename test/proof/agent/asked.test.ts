/** Questions of a user, asked at the front door and answered without a model: what they mean, what is called, what is recommended, and each number against the world itself. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { frameOf } from '#grammar/frames.ts'
import { createRegistry } from '#grammar/operation-registry.ts'
import { understand } from '#grammar/understand-message.ts'
import { noteTexts } from '#grammar/understanding.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import { contracts } from '../../../src/contracts.ts'
import { freshGateway } from '../../harness/gateway.ts'
import { type AskedWorld, createAskedWorld } from './asked-world.ts'
import { nowMs, type Row } from './corpus.ts'
import { mistakesOf } from './figures-in-text.ts'
import { type Answer, createFrontDoor, type Proposal } from './front-door.ts'
import { grade, share } from './grade.ts'
import { paraphrasesOf } from './paraphrases.ts'
import { universe } from './universe.ts'
import { type WorldFacts, worldFacts } from './world-facts.ts'

type AskedRow = {
  kind: string
  text: string
  thread?: string[]
  intent: string
  slots: Record<string, string>
  operations: string[]
  /** Facts whose numbers the answer has, and no others. */
  figures: string[]
  proposes?: Proposal[]
  ask?: string
  note?: keyof typeof noteTexts
  says?: string
  /** It is an order, although nothing is left to do in this world. */
  acts?: true
}
type Verdict = { row: AskedRow; answer: Answer; result: 'right' | 'asked back' | 'wrong'; mistakes: string[] }

const rows = readFileSync(`${import.meta.dirname}/asked.jsonl`, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as AskedRow)
const atOnce = 4
const rightMin = 0.95

describe('questions of a user', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let asked: AskedWorld
  let facts: WorldFacts
  let db: pg.Pool
  before(async () => {
    gateway = await freshGateway({ RATE_STREAM: '0' }, { ownWorld: 'the prices of the venue stand still' })
    db = new pg.Pool({ connectionString: gateway.databaseUrl, max: 2 })
    asked = await createAskedWorld(gateway)
    facts = worldFacts(asked)
  })
  after(async () => {
    await db?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  const answerTo = ({ text, thread }: AskedRow): Promise<Answer> =>
    createFrontDoor({ url: gateway.url, person: asked.person, db }).answerTo(
      facts.withAddresses(text),
      thread,
    )

  /** What the answer understood, as the thread remembers it and as the plan names it. */
  function misunderstandings({ intent, slots, ask: open, note }: AskedRow, { plan, memory, text }: Answer) {
    const found: string[] = []
    const same = (what: string, is: unknown, wanted: unknown) => {
      if (canonicalJson(is as never) !== canonicalJson(wanted as never))
        found.push(`${what} ${JSON.stringify(is)}, not ${JSON.stringify(wanted)}`)
    }
    if (open !== undefined) {
      const { pending } = memory
      same('it asks', [pending?.intent, pending?.slot, pending?.slots], [intent, open, slots])
      return found
    }
    if (note !== undefined) {
      if (text !== noteTexts[note]) found.push(`it says ${text}`)
      return found
    }
    const frame = frameOf(intent)
    if (frame?.refusal !== undefined) {
      if (text !== frame.refusal) found.push(`it says ${text}`)
      return found
    }
    same('it plans', plan, intent.replaceAll('_', ' '))
    const isRemembered = frame !== undefined && (frame.effect !== 'none' || frame.route !== undefined)
    const named = Object.entries(slots).map(([name, value]) => [name, facts.withAddresses(value)])
    if (isRemembered) same('slots', memory.last?.slots, Object.fromEntries(named))
    return found
  }

  async function idsOf(): Promise<Record<string, string>> {
    const [hooks, earn] = await Promise.all([
      asked.person.call<{ outstanding_orders: { id: string; order_kind: string }[] }>(
        'GET /wallet/outstanding-orders',
      ),
      asked.person.call<{ positions: { id: string }[] }>('GET /v1/earn/positions'),
    ])
    return {
      hook: hooks.body.outstanding_orders.find((each) => each.order_kind === 'hook')!.id,
      position: earn.body.positions[0]!.id,
    }
  }

  async function wantedProposals(
    { proposes = [] }: AskedRow,
    ids: Record<string, string>,
  ): Promise<Proposal[]> {
    const wanted: Proposal[] = []
    for (const { operation, input } of proposes) {
      const fields: Record<string, unknown> = {}
      for (const [name, value] of Object.entries(input)) fields[name] = await facts.written(value, ids)
      wanted.push({ operation, input: fields })
    }
    return wanted
  }
  const withoutQuoteId = (proposals: Proposal[]): Proposal[] =>
    proposals.map(({ operation, input }) => ({
      operation,
      input: typeof input.quote_id === 'string' ? { ...input, quote_id: '*' } : input,
    }))

  async function judge(row: AskedRow, ids: Record<string, string>): Promise<Verdict> {
    await facts.look()
    const answer = await answerTo(row)
    const mistakes = misunderstandings(row, answer)
    const tools = [...new Set(answer.tools)].toSorted()
    if (canonicalJson(tools) !== canonicalJson(row.operations.toSorted())) mistakes.push(`it calls ${tools}`)
    const wanted = await wantedProposals(row, ids)
    const proposed = withoutQuoteId(answer.proposals)
    if (canonicalJson(proposed as never) !== canonicalJson(wanted as never))
      mistakes.push(`it recommends ${JSON.stringify(proposed)}, not ${JSON.stringify(wanted)}`)
    if (row.says !== undefined && !answer.text.includes(row.says))
      mistakes.push(`it does not say ${row.says}`)
    if (row.ask === undefined) {
      const [newest = [], ...older] = (await facts.expected(row.figures)).map((each) =>
        mistakesOf(answer.text, each),
      )
      if (older.every((wrong) => wrong.length > 0)) mistakes.push(...newest)
    }
    const isOpen =
      answer.memory.pending !== undefined ||
      ['unclear', 'question'].some((kind) => answer.text === noteTexts[kind as keyof typeof noteTexts])
    const asksBack =
      row.ask === undefined && row.note === undefined && isOpen && answer.proposals.length === 0
    return {
      row,
      answer,
      mistakes,
      result: mistakes.length === 0 ? 'right' : asksBack ? 'asked back' : 'wrong',
    }
  }

  test('at least 95 % are answered right, with the numbers of the world, and none is answered wrong', async () => {
    const ids = await idsOf()
    const verdicts: Verdict[] = []
    const queue = [...rows]
    const work = async () => {
      for (let row = queue.shift(); row; row = queue.shift()) verdicts.push(await judge(row, ids))
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    console.log(tableOf(verdicts))
    const shown = ({ row, answer, mistakes }: Verdict) =>
      `${[...(row.thread ?? []), row.text].join(' // ')}\n  ${mistakes.join('\n  ')}\n  ${answer.text.replaceAll('\n', '\n  ')}`
    const of = (result: Verdict['result']) => verdicts.filter((each) => each.result === result)
    assert.equal(of('wrong').map(shown).join('\n'), '')
    assert.ok(rows.length >= 150)
    assert.ok(of('right').length / rows.length >= rightMin, of('asked back').map(shown).join('\n'))
  })
})

function tableOf(verdicts: readonly Verdict[]): string {
  const results = ['right', 'asked back', 'wrong'] as const
  const line = (name: string, of: readonly Verdict[]) =>
    [
      name.padEnd(14),
      ...results.map((each) => String(of.filter(({ result }) => result === each).length).padStart(10)),
    ].join(' ')
  const byKind = Map.groupBy(verdicts, ({ row }) => row.kind)
  return [
    ['kind'.padEnd(14), ...results.map((each) => each.padStart(10))].join(' '),
    ...[...new Set(rows.map(({ kind }) => kind))].map((kind) => line(kind, byKind.get(kind) ?? [])),
    line('all', verdicts),
  ].join('\n')
}

test('the same questions said otherwise mean the same in 85 % of the cases, and move nothing else in any', () => {
  // What no market of the world is called is called so here, too.
  const assets = universe.assets.filter(({ symbol }) => symbol !== 'PEPE')
  const registry = createRegistry(contracts, { ...universe, assets })
  const said = rows.flatMap(({ note, proposes, acts, text, ...rest }) => {
    if (note !== undefined || text.includes('@')) return []
    const row: Row = { ...rest, text, mood: rest.ask === undefined && (proposes || acts) ? 'do' : 'ask' }
    return paraphrasesOf(row).map((each) => ({ row, text: each.text }))
  })
  const graded = said.map(({ row, text }) =>
    grade({ ...row, text }, understand(text, { nowMs, state: {} }, registry)),
  )
  assert.ok(graded.length > 400, String(graded.length))
  assert.deepEqual(
    graded.filter(({ wrongMutations }) => wrongMutations.length > 0),
    [],
  )
  const held = share(graded, ({ areSlots }) => areSlots)
  console.log(`${graded.length} paraphrases, ${(100 * held).toFixed(1)} % alike`)
  assert.ok(held >= 0.85, String(held))
})
