/** Wordings that were written before the rules of the chat were read, asked at the front door: what is right, what is refused, and what is confidently wrong. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { operatorOf } from '../../harness/admin.ts'
import { dataFolder, freshGateway } from '../../harness/gateway.ts'
import { createFundedPerson, type Person } from '../../journeys/users.ts'
import { type AskedWorld, createAskedWorld } from './asked-world.ts'
import { type Answer, createFrontDoor } from './front-door.ts'
import {
  gradeWording,
  hasData,
  innerWordsOf,
  type Names,
  type Result,
  saysWhatWorks,
  type Wording,
} from './grade-wordings.ts'

const wordings = readFileSync(`${import.meta.dirname}/wordings.jsonl`, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Wording)
const atOnce = 4
const rightMin = 0.8
const wrongMax = 0.01

type Graded = { wording: Wording; answer: Answer; result: Result }

describe('wordings of readers', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let asked: AskedWorld
  let names: Names
  let db: pg.Pool
  before(async () => {
    gateway = await freshGateway({ RATE_STREAM: '0' }, { ownWorld: 'the prices of the venue stand still' })
    db = new pg.Pool({ connectionString: gateway.databaseUrl, max: 2 })
    asked = await createAskedWorld(gateway)
    names = await namesOf(asked)
    using folder = dataFolder()
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
    const { user_id } = (await asked.person.call<{ user_id: string }>('GET /v1/user')).body
    await operator.act('Each wording takes a credit.', 'credits', 'grant', user_id, '1000')
  })
  after(async () => {
    await db?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  test('at least 80 % are right, at most 1 % are confidently wrong, and each refusal says what would work', async () => {
    const doorOf = (person: Person) => createFrontDoor({ url: gateway.url, person, db })
    const [door, other] = [doorOf(asked.person), doorOf(await createFundedPerson(gateway.url))]
    const graded: Graded[] = []
    const queue = [...wordings]
    const work = async () => {
      for (let wording = queue.shift(); wording; wording = queue.shift()) {
        // What lowers the limits of an account would change the answers to other wordings.
        const answer = await (wording.kind === 'account' ? other : door).answerTo(wording.text)
        graded.push({ wording, answer, result: gradeWording(wording, answer, names) })
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    console.log(tableOf(graded))
    const of = (result: Result) => graded.filter((each) => each.result === result)
    const shown = (found: Graded[]) =>
      found
        .map(({ wording, answer }) => `${wording.text}\n  ${answer.text.replaceAll('\n', '\n  ')}`)
        .join('\n')
    assert.ok(wordings.length >= 400)
    assert.ok(of('right').length / graded.length >= rightMin, shown(of('refused')))
    assert.ok(of('wrong').length / graded.length <= wrongMax, shown(of('wrong')))
    const isRefusal = ({ wording, result }: Graded) =>
      result === 'refused' || wording.right.every((wanted) => 'refuses' in wanted || 'asks' in wanted)
    const isMute = (each: Graded) =>
      isRefusal(each) &&
      each.wording.kind !== 'talk' &&
      !hasData(each.answer) &&
      each.answer.proposals.length === 0 &&
      !saysWhatWorks(each.answer.text)
    assert.equal(shown(graded.filter(isMute)), '')
    const isInner = ({ answer }: Graded) => innerWordsOf(answer.text).length > 0
    assert.equal(shown(graded.filter(isInner)), '')
  })
})

async function namesOf({ person, world }: AskedWorld): Promise<Names> {
  const { tokens } = world.manifest
  const native: Record<string, { symbol: string; decimals: number }> = {
    '137': { symbol: 'POL', decimals: 18 },
    '7565164': { symbol: 'SOL', decimals: 9 },
  }
  const tokenOf = (chainId: unknown, address: unknown) =>
    tokens[String(chainId)]?.find(
      (token) => (token.address ?? token.mint)?.toLowerCase() === String(address).toLowerCase(),
    ) ??
    (/^(0x0+|0xe+|1+)$/i.test(String(address))
      ? (native[String(chainId)] ?? { symbol: 'ETH', decimals: 18 })
      : undefined)
  type Market = { question: string; outcomes: { outcome_id: string; outcome: string }[] }
  const { body } = await person.call<{ markets: Market[] }>('GET /predmkt/markets?limit=100')
  const outcomes = new Map(
    (body.markets ?? []).flatMap(({ question, outcomes: all }) =>
      all.map(({ outcome_id, outcome }) => [outcome_id, `${question} ${outcome}`] as const),
    ),
  )
  type Orders = { orders: { order_id: string; asset: string }[] }
  const [perp, spot] = await Promise.all([
    person.call<Orders>('GET /v1/perp/orders'),
    person.call<Orders>('GET /v1/spot_venue/orders'),
  ])
  const orders = [...perp.body.orders, ...spot.body.orders]
  return {
    assetOfOrder: (orderId) => orders.find(({ order_id }) => order_id === orderId)?.asset,
    symbolOf: (chainId, address) => tokenOf(chainId, address)?.symbol,
    decimalsOf: (chainId, address) => tokenOf(chainId, address)?.decimals ?? 0,
    outcomeOf: (outcomeId) => outcomes.get(String(outcomeId)) ?? '',
  }
}

function tableOf(graded: readonly Graded[]): string {
  const results = ['right', 'refused', 'wrong'] as const
  const line = (name: string, of: readonly Graded[]) =>
    [
      name.padEnd(16),
      ...results.map((each) => String(of.filter(({ result }) => result === each).length).padStart(8)),
    ].join(' ')
  const byKind = Map.groupBy(graded, ({ wording }) => wording.kind)
  return [
    ['kind'.padEnd(16), ...results.map((each) => each.padStart(8))].join(' '),
    ...[...byKind].map(([kind, of]) => line(kind, of)),
    line('all', graded),
  ].join('\n')
}
