/** Holdings while chains change or fail; each function returns the longest time that it waited for them, in milliseconds. */
import assert from 'node:assert/strict'
import { eventually, newAgent } from '../harness/gateway.ts'
import { type Person, personOf } from './users.ts'
import { base, polygon, solana, type World } from './world.ts'

type Holdings = {
  holdings: { chain_id: string; symbol: string; amount: string }[]
  total_value_usd: string
  complete: boolean
  stale: boolean
  chains: { chain_id: string; status: string; error: string | null }[]
  errors: { chain_id: string | null; message: string }[]
}
/** Without a faucet grant, so that new wallets begin empty. */
type Target = { url: string; world: World }

const allChains = ['1', '137', '42161', '7565164', '8453']

const newPerson = async (url: string) => personOf(url, await newAgent(url))
const readHoldings = async (person: Person, query = '') => {
  const { status, body } = await person.call<Holdings>(`GET /v1/holdings${query}`)
  assert.equal(status, 200)
  return body
}
const amountOf = ({ holdings }: Holdings, chainId: string, symbol: string) =>
  holdings.find((each) => each.chain_id === chainId && each.symbol === symbol)?.amount

export async function receiveDeposits({ url, world }: Target): Promise<number> {
  const person = await newPerson(url)
  const empty = await readHoldings(person)
  assert.deepEqual([empty.holdings, empty.total_value_usd, empty.stale], [[], '0', false])
  assert.deepEqual(empty.chains.map(({ chain_id }) => chain_id).sort(), allChains)

  const gifts = [
    [base, person.evm, 'USDC', '12.5', '12500000'],
    [base, person.evm, 'USDC', '0.000001', '12500001'],
    [polygon, person.evm, 'native', '3', '3000000000000000000'],
    [solana, person.solana, 'USDC', '7', '7000000'],
    [solana, person.solana, 'native', '1.5', '1500000000'],
  ] as const
  let slowestMs = 0
  for (const [chainId, address, token, amount, units] of gifts) {
    await world.fund(chainId, address, token, amount)
    const fundedMs = performance.now()
    const symbol = token === 'native' ? (chainId === solana ? 'SOL' : 'POL') : token
    const seen = async () =>
      amountOf(await readHoldings(person), chainId, symbol) === units ? true : undefined
    await eventually(seen, `${amount} ${token} on ${chainId}`)
    slowestMs = Math.max(slowestMs, performance.now() - fundedMs)
  }
  return slowestMs
}

export async function stopOneChain({ url, world }: Target): Promise<number> {
  const [person, stranger] = await Promise.all([newPerson(url), newPerson(url)])
  await world.fund(polygon, person.evm, 'USDC', '5')
  await world.fund(base, person.evm, 'USDC', '6')
  await world.fund(base, stranger.evm, 'USDC', '7')
  const before = await readHoldings(person)
  assert.equal(amountOf(before, polygon, 'USDC'), '5000000')
  let slowestMs = 0
  await world.chain(polygon, 'stop')
  try {
    for (const query of ['?event=wallet-refresh', '']) {
      const startedMs = performance.now()
      const during = await eventually(async () => {
        const now = await readHoldings(person, query)
        return now.stale ? now : undefined
      }, 'the unreachable chain is reported')
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
      const byChain = new Map(during.chains.map((each) => [each.chain_id, each]))
      assert.deepEqual(
        allChains.map((id) => byChain.get(id)?.status),
        ['ok', 'stale', 'ok', 'ok', 'ok'],
      )
      assert.deepEqual(
        during.errors.map(({ chain_id }) => chain_id),
        [polygon],
      )
      assert.ok((byChain.get(polygon)?.error ?? '').length > 0)
      assert.equal(during.complete, false)
      assert.equal(amountOf(during, polygon, 'USDC'), '5000000')
      assert.equal(amountOf(during, base, 'USDC'), '6000000')
    }
    const unseen = await readHoldings(stranger)
    assert.equal(unseen.chains.find(({ chain_id }) => chain_id === polygon)?.status, 'failed')
    assert.equal(amountOf(unseen, base, 'USDC'), '7000000')
    const { chains } = (
      await person.call<{ chains: { chain_id: string; status: string }[] }>('GET /v1/chains')
    ).body
    assert.equal(chains.length, 5)
  } finally {
    await world.chain(polygon, 'start')
  }
  const healed = async () => {
    const now = await readHoldings(person, '?event=wallet-refresh')
    return now.stale ? undefined : now
  }
  assert.equal(amountOf(await eventually(healed, 'the chain is back'), polygon, 'USDC'), '5000000')
  return slowestMs
}

export async function silenceOneChain({ url, world }: Target): Promise<number> {
  const person = await newPerson(url)
  await world.fund(base, person.evm, 'USDC', '6')
  await world.fault(`evm:${polygon}`, { silent: true })
  const startedMs = performance.now()
  const during = await readHoldings(person, '?event=wallet-refresh')
  const tookMs = performance.now() - startedMs
  assert.deepEqual(
    during.errors.map(({ chain_id }) => chain_id),
    [polygon],
  )
  assert.equal(amountOf(during, base, 'USDC'), '6000000')
  return tookMs
}
