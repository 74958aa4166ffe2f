/** Swaps of a user, and what the chains of the world show of them. */
import assert from 'node:assert/strict'
import { newAgent } from '../harness/gateway.ts'
import { createFundedPerson, type Person, personOf, type TaskBody } from './users.ts'
import { base, polygon, solana, type World } from './world.ts'

export const native = '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE'
/** A bridge of 50 USDC from Base. */
export const usdcToPolygon = {
  chain_id_in: base,
  chain_id_out: polygon,
  token_in: 'USDC',
  token_out: 'USDC',
  amount: '50000000',
}
export type EvmId = '1' | '8453' | '42161' | '137'

export type SwapBody = Omit<TaskBody, 'result' | 'balance_changes'> & {
  dryrun: boolean
  quote: {
    quote_id: string
    provider: string
    amount_in: string
    amount_out: string
    amount_out_min: string
    price_impact_bps: number
    fees: { type: string; amount: string; amount_usd: string; paid_by: string; token_address: string }[]
    fees_usd: string
    route: { tool: string; amount_in: string; amount_out: string }[]
    expires_at: string
  }
  policy: { decision: string; remaining_usd: string }
  result: {
    amount_in: string
    amount_out: string
    amount_out_min: string
    tx_hash: string
    provider: string
    refunded: { chain_id: string; token_address: string; amount: string; tx_hash: string } | null
    failure_reason: string | null
  }
  balance_changes: { chain_id: string; token_address: string; symbol: string; amount: string }[]
  detail: string
  reason?: string
}

export const swapOf = (
  person: Person,
  body: object,
  options: { key?: string; query?: string; at?: string } = {},
) => {
  const { query = '?wait=true', ...rest } = options
  return person.call<SwapBody>(`POST /v1/swap${query}`, { body, ...rest })
}

/** The swap, which must have been executed. */
export async function executed(person: Person, body: object): Promise<SwapBody> {
  const { status, body: done } = await swapOf(person, body)
  assert.deepEqual([status, done.status, done.outcome], [200, 'completed', 'executed'], JSON.stringify(done))
  return done
}

export type Held = Map<string, bigint>
type TokenAccounts = {
  value: { account: { data: { parsed: { info: { mint: string; tokenAmount: { amount: string } } } } } }[]
}
const tokenPrograms = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
]

/** What a wallet has on Solana, by mint. */
export async function solanaBalances(world: World, owner: string): Promise<Held> {
  const url = world.manifest.urls.solana
  const confirmed = { commitment: 'confirmed' }
  const lamports = (await world.rpc('getBalance', [owner, confirmed], url)) as { value: number }
  const held: Held = new Map([[`${solana} 11111111111111111111111111111111`, BigInt(lamports.value)]])
  for (const programId of tokenPrograms) {
    const options = { encoding: 'jsonParsed', ...confirmed }
    const found = await world.rpc('getTokenAccountsByOwner', [owner, { programId }, options], url)
    for (const { account } of (found as TokenAccounts).value) {
      const { mint, tokenAmount } = account.data.parsed.info
      held.set(`${solana} ${mint}`, BigInt(tokenAmount.amount))
    }
  }
  return held
}

/** Units of a token of the world on Solana, or of SOL. */
export async function solanaHeld(world: World, owner: string, symbol: string): Promise<bigint> {
  const mint = world.manifest.tokens[solana]!.find((each) => each.symbol === symbol)?.mint
  const held = await solanaBalances(world, owner)
  return held.get(`${solana} ${mint ?? '11111111111111111111111111111111'}`) ?? 0n
}

/** All balances on Solana, and all EVM balances of the tokens of the world, by chain and address in lower case. */
export async function balancesOf(world: World, person: Person): Promise<Held> {
  const held = await solanaBalances(world, person.solana)
  const ids = Object.keys(world.manifest.urls.evm) as EvmId[]
  await Promise.all(
    ids.flatMap((id) => [
      world.balance(id, person.evm).then((units) => held.set(`${id} ${native.toLowerCase()}`, units)),
      ...world.manifest.tokens[id]!.map(async ({ address }) => {
        held.set(`${id} ${address!.toLowerCase()}`, await world.balance(id, person.evm, address!))
      }),
    ]),
  )
  return held
}

/** The balance changes of tasks are those of the chains, to the unit. */
export async function assertMeasured(
  world: World,
  person: Person,
  before: Held,
  tasks: readonly Pick<SwapBody, 'balance_changes'>[],
): Promise<void> {
  const after = await balancesOf(world, person)
  const reported = new Map<string, bigint>()
  for (const { balance_changes } of tasks)
    for (const { chain_id, token_address, amount } of balance_changes) {
      const key = `${chain_id} ${chain_id === solana ? token_address : token_address.toLowerCase()}`
      reported.set(key, (reported.get(key) ?? 0n) + BigInt(amount))
    }
  for (const [key, units] of after)
    assert.equal(units - (before.get(key) ?? 0n), reported.get(key) ?? 0n, `${key} of ${person.evm}`)
}

export { createFundedPerson, newAgent, personOf }
