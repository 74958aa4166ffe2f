import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { eventually, freshGateway, newAgent } from '../harness/gateway.ts'
import { createBrowser, password } from '../oauth/oauth-app.ts'
import { receiveDeposits, silenceOneChain, stopOneChain } from './failing-chains.ts'
import { setUp } from './predmkt-calls.ts'
import { signedInPerson } from './signed-in.ts'
import { type Person, personOf } from './users.ts'
import { base, polygon, solana, type World, worldOf } from './world.ts'

type Holding = Record<
  'chain_id' | 'symbol' | 'name' | 'token_address' | 'amount' | 'balance' | 'kind',
  string
> & {
  decimals: number
  price_usd: string | null
  value_usd: string | null
  unrealized_pnl_usd: string | null
  as_of_block: number
  verified: boolean
}
type Holdings = {
  holdings: Holding[]
  total_value_usd: string
  complete: boolean
  stale: boolean
  chains: { chain_id: string; status: string; as_of_block: number | null; error: string | null }[]
  errors: { chain_id: string | null; message: string }[]
}
type Issue = { loc: string[]; type: string }

const allChains = ['1', '137', '42161', '7565164', '8453']

describe('holdings agree with the chains', () => {
  let gateway: Awaited<ReturnType<typeof freshGateway>>
  let world: World
  before(async () => {
    // Without a faucet grant, so that new wallets begin empty.
    gateway = await freshGateway({ FAUCET_URL: 'off' }, { ownWorld: 'a chain stops and prices change' })
    world = await worldOf(gateway.world)
  })
  afterEach(() => world.heal())
  after(() => gateway?.[Symbol.asyncDispose]())

  const newPerson = async () => personOf(gateway.url, await newAgent(gateway.url))
  const readHoldings = async (person: Person, query = '') => {
    const { status, body } = await person.call<Holdings>(`GET /v1/holdings${query}`)
    assert.equal(status, 200)
    return body
  }
  const amountOf = ({ holdings }: Holdings, chainId: string, symbol: string) =>
    holdings.find((each) => each.chain_id === chainId && each.symbol === symbol)?.amount

  /** Signs in to the page of the account; the answer reads the figures at the head of its money. */
  const openMoney = async ({ email }: { email: string }) => {
    const browser = createBrowser()
    const account = `${gateway.url}/oauth/account`
    await browser.submit(await browser.open(account), 'sign-in', { email, password })
    return async (): Promise<Record<string, string>> => {
      const { html } = await browser.open(account)
      const facts = /<h2 id="money">.*?<dl[^>]*>(.*?)<\/dl>/s.exec(html)?.[1] ?? ''
      return Object.fromEntries(
        [...facts.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)].map(([, name, value]) => [name, value]),
      )
    }
  }

  test('an external deposit shows, also in a wallet that was empty', async () => {
    await receiveDeposits({ url: gateway.url, world })
  })

  test('event=wallet-refresh reads the chains at once, even right after another read', async () => {
    const person = await newPerson()
    for (let times = 1; times <= 5; times++) {
      await readHoldings(person)
      await world.fund(base, person.evm, 'USDC', '1')
      assert.equal(
        amountOf(await readHoldings(person, '?event=wallet-refresh'), base, 'USDC'),
        String(times * 1_000_000),
      )
    }
  })

  test('an earn task shows at once, as cash and as shares with their value', async () => {
    const person = await newPerson()
    await world.fund(base, person.evm, 'USDC', '1000')
    await readHoldings(person)
    const done = (await person.deposit('400')).body
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    const after = await readHoldings(person)
    assert.equal(amountOf(after, base, 'USDC'), '600000000')
    const shares = after.holdings.find(({ kind }) => kind === 'earn_share')
    assert.equal(shares?.amount, done.result.shares_delta)
    assert.ok(Math.abs(Number(shares?.value_usd) - 400) < 0.001, JSON.stringify(shares))
    assert.ok(Math.abs(Number(after.total_value_usd) - 1_000) < 0.001)
  })

  test('an unreachable chain is named and shown with its last values, and the others are unaffected', async () => {
    await stopOneChain({ url: gateway.url, world })
  })

  test('a chain that is silent and never rejects is reported as such, and the others are shown', async () => {
    await silenceOneChain({ url: gateway.url, world })
  })

  test('every holding has symbol and decimals, an unknown price is null, and no number has an exponent', async () => {
    const person = await newPerson()
    await world.fund(base, person.evm, 'AERO', '0.000000000000000001')
    await world.fund(base, person.evm, 'DAI', '1000000')
    await world.fund(base, person.evm, 'native', '0.000000000000000001')
    await world.fund(solana, person.solana, 'PYUSD', '2.5')
    await world.fund(solana, person.solana, 'TAXED', '3')
    await world.price({ symbol: 'AERO', listed: false })
    try {
      const reply = await person.call<Holdings>('GET /v1/holdings?event=wallet-refresh')
      const { holdings, complete, total_value_usd } = reply.body
      assert.deepEqual(
        holdings.map(({ symbol }) => symbol).sort(),
        ['AERO', 'DAI', 'ETH', 'PYUSD', holdings.find(({ verified }) => !verified)?.symbol].sort(),
      )
      for (const each of holdings) {
        assert.ok(each.symbol.length > 0 && Number.isInteger(each.decimals), JSON.stringify(each))
        assert.match(each.amount, /^[1-9]\d*$/)
        assert.match(each.balance, /^(0|[1-9]\d*)(\.\d+)?$/)
        assert.equal(each.unrealized_pnl_usd, null)
      }
      const dust = holdings.find(({ symbol }) => symbol === 'AERO')
      assert.deepEqual(
        [dust?.balance, dust?.price_usd, dust?.value_usd],
        ['0.000000000000000001', null, null],
      )
      assert.equal(complete, false)
      const sum = holdings.reduce((total, { value_usd }) => total + Number(value_usd), 0)
      assert.ok(Math.abs(Number(total_value_usd) - sum) < 1e-6, `${total_value_usd} of ${sum}`)
      assert.ok(Number(total_value_usd) > 1_000_002)
      assert.doesNotMatch(JSON.stringify(reply.body), /[":]-?\d+(?:\.\d+)?[eE][+-]?\d+[",}]/)
    } finally {
      await world.price({ symbol: 'AERO', listed: true })
    }
  })

  test('a Token-2022 balance is listed like any other token of Solana', async () => {
    const person = await newPerson()
    await world.fund(solana, person.solana, 'PYUSD', '2.5')
    const { holdings } = await readHoldings(person, '?chain_type=solana&event=wallet-refresh')
    const pyusd = holdings.find(({ symbol }) => symbol === 'PYUSD')
    const mint = world.manifest.tokens[solana]?.find(({ symbol }) => symbol === 'PYUSD')?.mint
    assert.deepEqual(
      [pyusd?.token_address, pyusd?.balance, pyusd?.decimals, pyusd?.value_usd],
      [mint, '2.5', 6, '2.5'],
    )
  })

  test('without the price service values are null and balances stay', async () => {
    const person = await newPerson()
    await world.fund(base, person.evm, 'cbBTC', '0.5')
    await world.fault('prices', { status: 503 })
    const { holdings } = await readHoldings(person, '?event=wallet-refresh')
    assert.equal(holdings.find(({ symbol }) => symbol === 'cbBTC')?.amount, '50000000')
  })

  test('chain_type limits the answer to one family, in both spellings, and rejects others', async () => {
    const person = await newPerson()
    await Promise.all([
      world.fund(base, person.evm, 'USDC', '1'),
      world.fund(solana, person.solana, 'USDC', '2'),
    ])
    const families = { evm: 'evm', '0': 'evm', solana: 'solana', '1': 'solana' }
    for (const [spelling, family] of Object.entries(families)) {
      const { holdings, chains } = await readHoldings(person, `?chain_type=${spelling}&event=wallet-refresh`)
      const wanted = family === 'solana' ? [solana] : allChains.filter((id) => id !== solana)
      assert.deepEqual(chains.map(({ chain_id }) => chain_id).sort(), wanted)
      assert.deepEqual(
        holdings.map(({ amount }) => amount),
        [family === 'solana' ? '2000000' : '1000000'],
      )
    }
    const refused = await person.call<{ detail: Issue[] }>('GET /v1/holdings?chain_type=bitcoin')
    assert.equal(refused.status, 422)
    const [issue] = refused.body.detail
    assert.deepEqual([issue?.loc, issue?.type], [['query', 'chain_type'], 'literal_error'])
  })

  test('the page of the account names each place that does not answer, and leaves it out of the sum in words', async () => {
    const person = await signedInPerson(gateway)
    await setUp(person)
    await world.fund(base, person.evm, 'USDC', '40')
    const moneyOf = await openMoney(person)
    const missing = 'did not answer; what is there is not counted'
    const whole = await eventually(async () => {
      const money = await moneyOf()
      return Object.keys(money).join() === 'Wallets and vault,Perpetuals' ? money : undefined
    }, 'every place has answered')
    assert.match(whole['Wallets and vault']!, /^(39\.99|40\.0)\d* USD$/)

    await world.fault('hyperliquid', { refuse: true })
    // Each place is read by itself, and its last answer serves for a moment.
    await eventually(async () => {
      const { Perpetuals: perpetuals, 'Spot account': spot } = await moneyOf()
      return perpetuals === `The venue ${missing}` && spot === perpetuals
    }, 'both sides of the venue are named')
    await world.heal()

    await world.fault(`evm:${polygon}`, { refuse: true })
    const earlier = await eventually(async () => {
      const money = await moneyOf()
      return money.Predictions !== undefined && money.Polygon !== undefined ? money : undefined
    }, 'the chain and the prediction market on it are named')
    assert.equal(earlier.Predictions, `The venue or its chain ${missing}`)
    assert.match(
      earlier.Polygon!,
      /^The chain did not answer; what counts is what was there on .*\d\d:\d\d UTC$/,
    )
    assert.match(earlier['Wallets and vault']!, / USD, without Predictions, with earlier figures of Polygon$/)
    // Another person's wallets were never read.
    const strangers = await openMoney(await signedInPerson(gateway))
    assert.equal((await strangers()).Polygon, `The chain ${missing}`)
  })
})
