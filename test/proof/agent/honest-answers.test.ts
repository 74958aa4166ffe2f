/** What a person may rely on without a model: where it looked, what it proposes, which part it answers, and words without inner names. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { helpExamples } from '#grammar/help-texts.ts'
import { operatorOf } from '../../harness/admin.ts'
import { dataFolder, freshGateway } from '../../harness/gateway.ts'
import { createFundedPerson, type Person } from '../../journeys/users.ts'
import { type AskedWorld, createAskedWorld } from './asked-world.ts'
import { type Answer, createFrontDoor } from './front-door.ts'
import { innerWordsOf } from './grade-wordings.ts'

describe('answers without a model', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let asked: AskedWorld
  let db: pg.Pool
  before(async () => {
    gateway = await freshGateway({ RATE_STREAM: '0' }, { ownWorld: 'the prices of the venue stand still' })
    db = new pg.Pool({ connectionString: gateway.databaseUrl, max: 2 })
    asked = await createAskedWorld(gateway)
    using folder = dataFolder()
    const operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
    const { user_id } = (await asked.person.call<{ user_id: string }>('GET /v1/user')).body
    await operator.act('Each question takes a credit.', 'credits', 'grant', user_id, '500')
  })
  after(async () => {
    await db?.end()
    await gateway?.[Symbol.asyncDispose]()
  })

  async function ask(text: string, person: Person = asked.person): Promise<Answer> {
    const door = createFrontDoor({ url: gateway.url, person, db })
    const answer = await door.answerTo(text)
    assert.deepEqual(innerWordsOf(answer.text), [], `${text}: ${answer.text}`)
    return answer
  }
  const proposed = ({ proposals }: Answer) => proposals.map(({ operation }) => operation)

  test('a limit order is looked for in all places, and where none is, the places are named', async () => {
    for (const text of [
      'cancel the limit order on btc',
      'cancel my btc limit',
      'take back the btc limit order',
    ]) {
      const answer = await ask(text)
      assert.deepEqual(proposed(answer), ['perp_cancel'], `${text}: ${answer.text}`)
    }
    assert.deepEqual(proposed(await ask('cancel my hype limit order')), ['spot_venue_cancel'])
    for (const text of ['cancel the limit order on sol', 'cancel my doge orders', 'remove the stop on sol']) {
      const answer = await ask(text)
      assert.deepEqual(answer.proposals, [], text)
      for (const place of [/on chains/, /perp/, /spot/]) assert.match(answer.text, place, text)
    }
    const resting = await ask('my limit orders')
    for (const asset of ['ETH', 'BTC', 'HYPE']) assert.match(resting.text, new RegExp(asset))
  })

  test('nothing is proposed that the gateway refuses, and the reason says what would work', async () => {
    for (const [text, reason] of [
      ['open a 100x long on eth with 50 dollars', /\b25\b/],
      ['long btc with 5 dollars', /\b10\b/],
      ['long eth 20000 usd', /needs .* available/],
      ['long eth 900000 usd', /my limits/],
      ['short arb 100 usd 25x', /\b10\b/],
      ['sell 500 hype', /HYPE/],
      ['buy 4 dollars of hype', /\b10\b/],
      ['withdraw 90000 from perps', /withdraw|available|have/i],
      ['withdraw 5000 from the vault', /vault|position|150/i],
      ['deposit 900000 usdc into the vault', /USDC|balance|limit/i],
      ['put a stop at 5000 on my eth long', /stop|price/i],
      ['swap 0 usdc to eth on base', /much|amount/i],
      ['swap -5 usdc to eth on base', /much|amount/i],
    ] as const) {
      const answer = await ask(text)
      assert.deepEqual(answer.proposals, [], `${text}: ${answer.text}`)
      assert.match(answer.text, reason, text)
      assert.doesNotMatch(answer.text, /1\. (-5|0) dollars/, text)
    }
    assert.deepEqual(proposed(await ask('long eth 100 dollars 5x')), ['perp_open'])
  })

  test('sums are sums: net worth, by chain and by asset', async () => {
    const worth = await ask('what is my net worth')
    assert.deepEqual(worth.tools, ['portfolio_show'])
    const { body } = await asked.person.call<{ total_usd: string }>('GET /portfolio')
    const whole = Math.floor(Number(body.total_usd) / 100).toLocaleString('en')
    assert.ok(worth.text.replaceAll(',', '').includes(whole.replaceAll(',', '')), worth.text)
    assert.match((await ask('on which chain is most of my money')).text, /^Most is on /)
    const chains = await ask('my money by chain')
    for (const chain of ['Base', 'Arbitrum', 'Hyperliquid']) assert.match(chains.text, new RegExp(chain))
    assert.match((await ask('my portfolio by asset')).text, /^USDC/m)
    assert.doesNotMatch(chains.text, /And \d+ more/)
  })

  test('a liquidation price that is not there is said to be none', async () => {
    const answer = await ask('where do i get liquidated on eth')
    assert.deepEqual(answer.tools, ['perp_orders'])
    assert.match(answer.text, /liquidation/)
  })

  test('a question that is read in part says which part', async () => {
    for (const [text, rest] of [
      ['price of eth and is vitalik selling', /vitalik/],
      ['btc price and the weather in berlin', /weather/],
      ['show my positions and email them to my accountant', /email|accountant/],
    ] as const) {
      const answer = await ask(text)
      assert.ok(answer.tools.length > 0, text)
      assert.match(answer.text, rest, text)
      assert.match(answer.text, /not (read|answered|done)/i, text)
    }
  })

  test('a window of time is honoured or refused', async () => {
    for (const [text, window] of [
      ['how did eth move this week', /7 days/],
      ['btc over the last 30 days', /30 days/],
      ['high of sol yesterday', /yesterday/],
      ['how did hype do since monday', /since/],
    ] as const) {
      const answer = await ask(text)
      assert.deepEqual(answer.tools, ['market_candles'], `${text}: ${answer.text}`)
      assert.match(answer.text, window, text)
    }
    for (const text of [
      'what was i worth yesterday',
      'how much did my portfolio change this week',
      'my positions last week',
      'what was the vault apy in march',
    ]) {
      const answer = await ask(text)
      assert.deepEqual(answer.citations, [], `${text}: ${answer.text}`)
      assert.match(answer.text, /as (it is|they are) now|no record/, text)
    }
  })

  test('amounts have the decimals of a person', async () => {
    for (const text of ['how much eth do i have', 'quote 100 usdc to dai on base', 'what do i hold on base'])
      assert.doesNotMatch((await ask(text)).text, /\d\.\d{9,}/, text)
  })

  test('an agent that answers more is named with how to choose it', async () => {
    const answer = await ask('rsi of eth')
    assert.match(answer.text, /MarketAnalyzerAgent/)
    assert.match(answer.text, /"[^"]+"/)
  })

  test('another language gets the word that English is read', async () => {
    for (const text of ['was kostet bitcoin', 'compra 50 dolares de eth', '比特币价格'])
      assert.match((await ask(text)).text, /English/, text)
  })

  test('a number of dollars beside a leverage is said to be the size of the position', async () => {
    assert.match((await ask('long eth with 50 dollars at 5x')).text, /size of the position/)
  })

  test('every example that help gives works', async () => {
    const examples = helpExamples()
    assert.ok(examples.length > 30, String(examples.length))
    const failed: string[] = []
    await asked.person.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
    // What only restricts is done at once, so another user says it.
    const other = await createFundedPerson(gateway.url)
    const restricts = (example: string) => /limit to|stop everything/.test(example)
    for (const example of examples.toSorted((a, b) => Number(restricts(a)) - Number(restricts(b)))) {
      const { text, tools, memory } = await ask(example, restricts(example) ? other : asked.person)
      const isHelp = text.startsWith('These are examples')
      if (tools.length === 0 && memory.pending === undefined && !isHelp) failed.push(`${example}: ${text}`)
      if (/not understood|nothing is done|would be refused|could not be read/.test(text))
        failed.push(`${example}: ${text}`)
    }
    assert.equal(failed.join('\n'), '')
  })
})
