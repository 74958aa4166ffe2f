/**
 * One property over the whole product: what a user was given is in the user's wallets, in the vault, at the venue, or
 * paid as a fee. Chains and venue are asked themselves; of the gateway only what every client sees is used.
 */
import assert from 'node:assert/strict'
import { type Agent, bearer, http } from './gateway.ts'

const bridgeChain = '42161'
const vaultChain = '8453'
const usdcDecimals = 6
const venueDecimals = 8
/** How the venue numbers USDC among its tokens. */
const usdcToken = '0'

type Manifest = {
  urls: { evm: Record<string, string> }
  contracts: Record<string, { usdc: string; vault?: string }>
}
type Fill = { coin: string; px: string; sz: string; side: 'A' | 'B'; fee: string; feeToken: string }
type VenueAccount = {
  rawUsd: string
  spot: Record<string, { total: string }>
  positions: { rawUsd: string }[]
  fills: Fill[]
  fundings: { usdc: string }[]
}
type Task = {
  task_id: string
  kind: string
  status: string
  outcome: string | null
  result: { amount_usdc_decimal?: string; amount?: string; withdrawn_usd?: string } | null
}
type Position = { id: string; shares: string; external_delta_shares: string | null }

/** Decimal text in units; more digits than that are cut off. */
function unitsOf(text: string, decimals: number): bigint {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text) ?? []
  return BigInt(`${sign}${whole}${fraction.padEnd(decimals, '0').slice(0, decimals)}`)
}
const total = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, each) => sum + each, 0n)

async function worldOf(control: string) {
  const manifest = (await http<Manifest>(`${control}/`)).body
  const balance = async (chain: string, token: string, owner: string): Promise<bigint> => {
    const data = `0x70a08231${owner.slice(2).toLowerCase().padStart(64, '0')}`
    const body = { jsonrpc: '2.0', id: 1, method: 'eth_call', params: [{ to: token, data }, 'latest'] }
    const reply = await http<{ result: string }>(manifest.urls.evm[chain]!, { method: 'POST', body })
    return BigInt(reply.body.result)
  }
  return {
    usdc: (chain: string, owner: string) => balance(chain, manifest.contracts[chain]!.usdc, owner),
    shares: (owner: string) => balance(vaultChain, manifest.contracts[vaultChain]!.vault!, owner),
    async venue(owner: string): Promise<VenueAccount | undefined> {
      const url = `${control}/venues/hyperliquid/effects?user=${owner}`
      return (await http<{ accounts: VenueAccount[] }>(url)).body.accounts[0]
    },
  }
}

export type Given = { base: bigint; bridge: bigint }
export type Owner = Agent & { evm: string }

/** What the faucet gave, read before anything else happens. */
export async function givenTo(control: string, { evm }: Pick<Owner, 'evm'>): Promise<Given> {
  const world = await worldOf(control)
  return { base: await world.usdc(vaultChain, evm), bridge: await world.usdc(bridgeChain, evm) }
}

async function tasksOf(url: string, who: Owner): Promise<Task[]> {
  const all: Task[] = []
  for (let skip = 0; ; skip += 100) {
    const path = `/v1/tasks?limit=100&skip=${skip}`
    const { items } = (await http<{ items: Task[] }>(url + path, { headers: bearer(who) })).body
    all.push(...items)
    if (items.length < 100) return all
  }
}

async function positionsOf(url: string, who: Owner): Promise<Position[]> {
  type Page = { positions: Position[]; next_after: string | null }
  const all: Position[] = []
  for (let after = ''; ; ) {
    const path = `/v1/earn/positions?history_limit=1${after === '' ? '' : `&after=${after}`}`
    const { body } = await http<Page>(url + path, { headers: bearer(who) })
    all.push(...body.positions)
    if (body.next_after === null) return all
    after = body.next_after
  }
}

/** Tasks of which nobody knows yet how they end. */
export const liveTasks = async (url: string, who: Owner): Promise<Task[]> =>
  (await tasksOf(url, who)).filter(({ status }) => status === 'pending' || status === 'running')

/** USDC that the fills, fees and fundings moved, in units of the eighth decimal. Tokens are no USDC. */
function traded({ fills, fundings }: VenueAccount): bigint {
  const fillUnits = ({ px, sz, side, fee, feeToken }: Fill): bigint => {
    const value = (unitsOf(px, venueDecimals) * unitsOf(sz, venueDecimals)) / 10n ** 8n
    const paid = feeToken === 'USDC' ? unitsOf(fee, venueDecimals) : 0n
    return (side === 'B' ? -value : value) - paid
  }
  return total([...fills.map(fillUnits), ...fundings.map(({ usdc }) => unitsOf(usdc, venueDecimals))])
}

export type Conserved = { who: string; lines: Record<string, { expected: bigint; found: bigint }> }

/** Once nothing of the user is under way: each line has to agree to the unit. */
export async function conservationOf(
  { url, control }: { url: string; control: string },
  who: Owner,
  given: Given,
): Promise<Conserved> {
  const world = await worldOf(control)
  const [tasks, positions] = [await tasksOf(url, who), await positionsOf(url, who)]
  const done = tasks.filter(({ outcome, result }) => outcome === 'executed' && result !== null)
  const sum = (kind: string, field: 'amount_usdc_decimal' | 'amount' | 'withdrawn_usd', decimals: number) =>
    total(
      done
        .filter((task) => task.kind === kind)
        .map(({ result }) => unitsOf(result?.[field] ?? '0', decimals)),
    )
  const into = sum('earn_deposit', 'amount_usdc_decimal', usdcDecimals)
  const outOf = sum('earn_withdraw', 'amount_usdc_decimal', usdcDecimals)
  const funded = sum('perp_fund', 'amount', 0)
  const paid = sum('perp_withdraw', 'amount', 0)
  const taken = sum('perp_withdraw', 'withdrawn_usd', usdcDecimals)
  const [base, bridge, shares, account] = [
    await world.usdc(vaultChain, who.evm),
    await world.usdc(bridgeChain, who.evm),
    await world.shares(who.evm),
    await world.venue(who.evm),
  ]
  const scale = 10n ** BigInt(venueDecimals - usdcDecimals)
  const cash = account
    ? total([
        unitsOf(account.rawUsd, venueDecimals),
        unitsOf(account.spot[usdcToken]?.total ?? '0', venueDecimals),
        ...account.positions.map(({ rawUsd }) => unitsOf(rawUsd, venueDecimals)),
      ])
    : 0n
  const atVenue = account ? traded(account) : 0n
  const inVault = into - outOf
  const atVenueCash = (cash - atVenue) / scale
  return {
    who: who.evm,
    lines: {
      'wallet on the chain of the vault': { expected: given.base - inVault, found: base },
      'shares of the positions and of the account': {
        expected: total(positions.map((position) => BigInt(position.shares))),
        found: shares,
      },
      'wallet on the chain of the bridge': { expected: given.bridge - funded + paid, found: bridge },
      'cash at the venue': { expected: funded - taken, found: atVenueCash },
      'all that was given': {
        expected: given.base + given.bridge,
        found: base + bridge + inVault + atVenueCash + (taken - paid),
      },
    },
  }
}

/** A fill's value has more digits than the venue's money, which rounds each of them. */
const roundingUnits = 1n

export function assertConserved({ who, lines }: Conserved): void {
  for (const [line, { expected, found }] of Object.entries(lines)) {
    const apart = found - expected
    const most = line.includes('venue') || line.startsWith('all') ? roundingUnits : 0n
    assert.ok(apart <= most && apart >= -most, `${who}: ${line}: ${expected} expected, ${found} found`)
  }
}
