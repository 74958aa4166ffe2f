/**
 * One invariant of the whole product: the funds of a user are in the user's wallets, in the vault, at the venue, or
 * paid as a fee. Chains and venue are read directly; the gateway only through what every client sees.
 */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

const everyChain: readonly string[] = ['1', '8453', '42161', '137']
const bridgeChain = '42161'
const vaultChain = '8453'
const usdcDecimals = 6
export const venueDecimals = 8
/** The faucet grant of a world for a new user on each chain. */
const faucetGrantUnits = 10_000_000_000n
/** The venue's tokens by index, and the token of each spot market. */
const venueTokens: Record<string, string> = { 0: 'USDC', 1: 'PURR', 2: 'HYPE', 3: 'UBTC', 4: 'UETH' }
const spotMarkets: Record<string, string> = { 'PURR/USDC': 'PURR', '@1': 'HYPE', '@2': 'UBTC', '@3': 'UETH' }

type Manifest = {
  urls: { evm: Record<string, string> }
  contracts: Record<string, { usdc: string; vault?: string }>
}
type Fill = {
  coin: string
  px: string
  sz: string
  side: 'A' | 'B'
  fee: string
  feeToken: string
  tid: number
}
type VenueAccount = {
  rawUsd: string
  spot: Record<string, { total: string }>
  positions: { rawUsd: string }[]
  fills: Fill[]
  fundings: { usdc: string }[]
}
export type Task = {
  task_id: string
  kind: string
  status: string
  state: string
  outcome: string | null
  result: {
    amount_usdc_decimal?: string
    shares_delta?: string
    amount?: string
    chain_id?: string
    /** Native units of a payment for credits. */
    paid?: string
    withdrawn_usd?: string
    fee_usd?: string
    funded?: string[]
    /** The legs of a funding or withdrawal with a swap. */
    legs?: { role: string; status: string; amount: string }[]
  } | null
  balance_changes?: { chain_id: string; token_address: string; amount: string }[] | null
  fills?: { venue?: string; fill_id: string; size: string; fee: string }[] | null
}
type Position = { id: string; shares: string; external_delta_shares: string | null }

/** The gateway's view of one user. */
export type GatewayView = { tasks(): Promise<Task[]>; positions(): Promise<Position[]> }
/** Units by asset: `usdc:8453`, `gas:8453`, `shares`, and by the venue's names `venue:USDC`, `venue:HYPE`. */
export type Amounts = Record<string, bigint>
export type Owner = { token: string; evm: string }
/** Reads the venue's own record under a path of its control port. */
type VenueRecord = <B>(path: string) => Promise<B>

/** Decimal text in units; further digits are cut off. */
export function decimalUnits(text: string, decimals: number): bigint {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text) ?? []
  return BigInt(`${sign}${whole}${fraction.padEnd(decimals, '0').slice(0, decimals)}`)
}
const total = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, each) => sum + each, 0n)
const venueUnits = (text: string | undefined): bigint => decimalUnits(text ?? '0', venueDecimals)

type Adjustment = { asset: string; units: bigint; why: string }
const adjustments = new Map<string, Adjustment[]>()
const excludedUsers = new Map<string, string>()
const keyOf = ({ evm }: { evm: string }) => evm.toLowerCase()

/** Changes that a test makes to the funds of a user outside the gateway. */
export const testFunding = {
  add(owner: { evm: string }, adjustment: Adjustment): void {
    adjustments.set(keyOf(owner), [...(adjustments.get(keyOf(owner)) ?? []), adjustment])
  },
  /** Excludes the user of this agent id or address, whose expected funds are unknown. */
  excludeUser(id: string, why: string): void {
    excludedUsers.set(id.toLowerCase(), why)
  },
}
export const isExcluded = (id: string): boolean => excludedUsers.has(id.toLowerCase())

const requestMsMax = 20_000

/** Retries while the request is rate-limited. */
async function requestJson<B>(url: string, init: RequestInit = {}): Promise<B> {
  for (const untilMs = performance.now() + requestMsMax; ; await delay(100)) {
    const reply = await fetch(url, { ...init, signal: AbortSignal.timeout(requestMsMax) })
    if (reply.ok) return (await reply.json()) as B
    if (reply.status !== 429 || performance.now() > untilMs)
      throw new Error(`${url}: ${reply.status} ${await reply.text()}`)
  }
}

async function openWorld(
  control: string,
  venue: VenueRecord = (path) => requestJson(`${control}/venues/hyperliquid${path}`),
  chains = everyChain,
) {
  const manifest = await requestJson<Manifest>(`${control}/`)
  return {
    chains,
    usdcOf: (chain: string): string => manifest.contracts[chain]!.usdc,
    async wallet(chain: string, owner: string) {
      const { usdc, vault } = manifest.contracts[chain]!
      const data = `0x70a08231${owner.slice(2).toLowerCase().padStart(64, '0')}`
      const balanceOf = (to: string) => ({ method: 'eth_call', params: [{ to, data }, 'latest'] })
      const calls = [balanceOf(usdc), { method: 'eth_getBalance', params: [owner, 'latest'] }]
      if (vault !== undefined) calls.push(balanceOf(vault))
      const replies = await requestJson<{ id: number; result: string }[]>(manifest.urls.evm[chain]!, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))),
      })
      const [held, gas, shares] = replies.sort((a, b) => a.id - b.id).map(({ result }) => BigInt(result))
      return { usdc: held!, gas: gas!, shares: shares ?? 0n }
    },
    async venue(owner: string): Promise<VenueAccount | undefined> {
      return (await venue<{ accounts: VenueAccount[] }>(`/effects?user=${owner}`)).accounts[0]
    },
  }
}

/** The faucet grants, read before anything else happens. */
export async function readFaucetGrant(control: string, { evm }: Pick<Owner, 'evm'>): Promise<Amounts> {
  const world = await openWorld(control)
  const found = await Promise.all(
    world.chains.map(async (chain) => [`usdc:${chain}`, (await world.wallet(chain, evm)).usdc] as const),
  )
  return Object.fromEntries(found)
}

/** Funds from the faucet task, and the funding that the test declares. */
function expectedGrant(tasks: Task[], owner: { evm: string }): Amounts {
  const all: Amounts = {}
  for (const { kind, result } of tasks)
    if (kind === 'faucet_grant')
      for (const chain of result?.funded ?? []) all[`usdc:${chain}`] = faucetGrantUnits
  for (const { asset, units } of adjustments.get(keyOf(owner)) ?? []) all[asset] = (all[asset] ?? 0n) + units
  return all
}

function gatewayView({ token }: Pick<Owner, 'token'>, url: string): GatewayView {
  const read = <B>(path: string) =>
    requestJson<B>(url + path, { headers: { authorization: `Bearer ${token}` } })
  return {
    async tasks() {
      const all: Task[] = []
      for (let skip = 0; ; skip += 100) {
        const { items } = await read<{ items: Task[] }>(`/v1/tasks?limit=100&skip=${skip}`)
        all.push(...items)
        if (items.length < 100) return all
      }
    },
    async positions() {
      type Page = { positions: Position[]; next_after: string | null }
      const all: Position[] = []
      for (let after = ''; ; ) {
        const page = await read<Page>(`/v1/earn/positions?history_limit=1${after && `&after=${after}`}`)
        all.push(...page.positions)
        if (page.next_after === null) return all
        after = page.next_after
      }
    },
  }
}

const isLive = ({ status }: Task) => status === 'pending' || status === 'running'

/** Tasks whose end is not known yet. */
export const liveTasks = async (url: string, who: Owner): Promise<Task[]> =>
  (await gatewayView(who, url).tasks()).filter(isLive)

/** Sums of the fills and fundings, by asset. */
function tradedAmounts({ fills, fundings }: VenueAccount): Amounts {
  const moved: Amounts = {}
  const add = (token: string, units: bigint) => {
    moved[token] = (moved[token] ?? 0n) + units
  }
  for (const { coin, px, sz, side, fee, feeToken } of fills) {
    const sign = side === 'B' ? 1n : -1n
    const value = (venueUnits(px) * venueUnits(sz)) / 10n ** BigInt(venueDecimals)
    add('USDC', -sign * value)
    add(feeToken, -venueUnits(fee))
    const token = spotMarkets[coin]
    if (token !== undefined) add(token, sign * venueUnits(sz))
  }
  for (const { usdc } of fundings) add('USDC', venueUnits(usdc))
  return moved
}

/** Balances of the account; collateral is in USDC, on either side or in a position. */
function venueHoldings({ rawUsd, spot, positions }: VenueAccount): Amounts {
  const held: Amounts = {}
  for (const [index, balance] of Object.entries(spot))
    held[venueTokens[index] ?? index] = venueUnits(balance.total)
  held.USDC = (held.USDC ?? 0n) + venueUnits(rawUsd) + total(positions.map((each) => venueUnits(each.rawUsd)))
  return held
}

type Comparison = { expected: bigint; found: bigint }
export type ConservationReport = { who: string; lines: Record<string, Comparison> }
type World = Awaited<ReturnType<typeof openWorld>>

/** Each fill in a task's result is a fill of the venue, with the same size and fee. */
function fillComparisons(tasks: Task[], account: VenueAccount | undefined): Record<string, Comparison> {
  const taskFills = tasks.flatMap(({ fills }) => fills ?? []).filter(({ venue }) => venue !== 'polymarket')
  const ids = new Set(taskFills.map(({ fill_id }) => fill_id))
  const venueFills = (account?.fills ?? []).filter(({ tid }) => ids.has(String(tid)))
  return {
    'size of the fills in task results': {
      expected: total(venueFills.map(({ sz }) => venueUnits(sz))),
      found: total(taskFills.map(({ size }) => venueUnits(size))),
    },
    'fees of the fills in task results': {
      expected: total(venueFills.map(({ fee }) => venueUnits(fee))),
      found: total(taskFills.map(({ fee }) => venueUnits(fee))),
    },
  }
}

/** Wallets change by the measured changes of such a task, of which a part may be all that was executed. */
const isSwapped = ({ kind, result }: Pick<Task, 'kind' | 'result'>): boolean =>
  [
    'swap',
    'hook_execute',
    'limit_order_execute',
    'wallets_transfer',
    'predmkt_fund',
    'predmkt_withdraw',
  ].includes(kind) ||
  (['perp_fund', 'perp_withdraw'].includes(kind) &&
    result?.legs?.some(({ role }) => role === 'swap') === true)

const nativeSentinel = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee'

/** What swaps have changed by their own account of it, whatever their outcome. */
function swappedAmounts({ usdcOf, chains }: Pick<World, 'usdcOf' | 'chains'>, tasks: Task[]): Amounts {
  const moved: Amounts = {}
  for (const { kind, result, balance_changes } of tasks) {
    if (!isSwapped({ kind, result })) continue
    for (const { chain_id, token_address, amount } of balance_changes ?? []) {
      if (!chains.includes(chain_id)) continue
      const token = token_address.toLowerCase()
      const asset = token === usdcOf(chain_id).toLowerCase() ? 'usdc' : token === nativeSentinel ? 'gas' : ''
      const key = `${asset}:${chain_id}`
      moved[key] = (moved[key] ?? 0n) + BigInt(amount)
    }
  }
  return moved
}

async function comparisonsOf(
  world: World,
  tasks: Task[],
  positions: Position[],
  who: { evm: string },
  has: Amounts,
) {
  const done = tasks.filter(({ outcome }) => outcome === 'executed')
  type Field = Exclude<keyof NonNullable<Task['result']>, 'funded' | 'chain_id' | 'paid' | 'legs'>
  const sum = (kind: string, field: Field, decimals: number) =>
    total(
      done
        .filter((task) => task.kind === kind)
        .map(({ result }) => decimalUnits(result?.[field] ?? '0', decimals)),
    )
  const into = sum('earn_deposit', 'amount_usdc_decimal', usdcDecimals)
  const outOf = sum('earn_withdraw', 'amount_usdc_decimal', usdcDecimals)
  const [direct, swappedTasks] = [done, tasks].map((list, at) =>
    list.filter((task) => isSwapped(task) === (at === 1)),
  ) as [Task[], Task[]]
  const sumOf = (kind: string, field: Field, decimals: number) =>
    total(
      direct
        .filter((task) => task.kind === kind)
        .map(({ result }) => decimalUnits(result?.[field] ?? '0', decimals)),
    )
  const legs = (role: string) =>
    total(
      swappedTasks
        .flatMap(({ result }) => result?.legs ?? [])
        .filter((leg) => leg.role === role)
        .map(({ amount }) => BigInt(amount)),
    )
  const funded = sumOf('perp_fund', 'amount', 0)
  const paid = sumOf('perp_withdraw', 'amount', 0)
  const taken = sumOf('perp_withdraw', 'withdrawn_usd', usdcDecimals)
  const takenForSwaps = total(
    swappedTasks
      .filter(({ kind }) => kind === 'perp_withdraw')
      .map(({ result }) => decimalUnits(result?.withdrawn_usd ?? '0', usdcDecimals)),
  )
  const moved: Amounts = { [vaultChain]: outOf - into, [bridgeChain]: paid - funded }
  const swapped = swappedAmounts(world, tasks)
  const [wallets, account] = await Promise.all([
    Promise.all(world.chains.map((chain) => world.wallet(chain, who.evm))),
    world.venue(who.evm),
  ])
  const lines: Record<string, Comparison> = {}
  for (const [at, { usdc, gas }] of wallets.entries()) {
    const chain = world.chains[at]!
    lines[`USDC in the wallet on ${chain}`] = {
      expected: (has[`usdc:${chain}`] ?? 0n) + (moved[chain] ?? 0n) + (swapped[`usdc:${chain}`] ?? 0n),
      found: usdc,
    }
    const paidHere = done.filter(
      ({ kind, result }) => kind === 'credits_recharge' && result?.chain_id === chain,
    )
    lines[`native coin in the wallet on ${chain}`] = {
      expected:
        (has[`gas:${chain}`] ?? 0n) +
        (swapped[`gas:${chain}`] ?? 0n) -
        total(paidHere.map(({ result }) => BigInt(result?.paid ?? '0'))),
      found: gas,
    }
  }
  const shares = wallets[world.chains.indexOf(vaultChain)]?.shares ?? 0n
  lines['shares by the tasks'] = {
    expected:
      (has.shares ?? 0n) + sum('earn_deposit', 'shares_delta', 0) + sum('earn_withdraw', 'shares_delta', 0),
    found: shares,
  }
  // External changes are outside the positions until their owner books them.
  const hasExternal = has.shares !== undefined
  const sharesOf = ({ shares: booked, external_delta_shares: outside }: Position) =>
    BigInt(booked) + (hasExternal ? BigInt(outside ?? '0') : 0n)
  lines['shares of the positions and of the account'] = {
    expected: total(positions.map(sharesOf)),
    found: shares,
  }
  lines['fees of withdrawals'] = {
    expected: sumOf('perp_withdraw', 'fee_usd', usdcDecimals),
    found: taken - paid,
  }
  const atVenue = account ? venueHoldings(account) : {}
  const trades = account ? tradedAmounts(account) : {}
  const scale = 10n ** BigInt(venueDecimals - usdcDecimals)
  for (const token of new Set([...Object.values(venueTokens), ...Object.keys(atVenue)])) {
    const came = token === 'USDC' ? (funded + legs('deposit') - taken - takenForSwaps) * scale : 0n
    lines[`${token} at the venue`] = {
      expected: (has[`venue:${token}`] ?? 0n) + came + (trades[token] ?? 0n),
      found: atVenue[token] ?? 0n,
    }
  }
  Object.assign(lines, fillComparisons(tasks, account))
  return lines
}

/** Once the user has no running task: each line must agree to the unit. */
export async function compareFunds(
  { url, control }: { url: string; control: string },
  who: Owner,
  has: Amounts,
): Promise<ConservationReport> {
  const gateway = gatewayView(who, url)
  const [world, tasks, positions] = [
    await openWorld(control),
    await gateway.tasks(),
    await gateway.positions(),
  ]
  return { who: who.evm, lines: await comparisonsOf(world, tasks, positions, who, has) }
}

export function assertConserved({ who, lines }: ConservationReport): void {
  const differences = Object.entries(lines)
    .filter(([, { expected, found }]) => expected !== found)
    .map(([line, { expected, found }]) => `${line}: ${expected} expected, ${found} found`)
  const known = (adjustments.get(who.toLowerCase()) ?? []).map(
    ({ asset, units, why }) => `given ${units} of ${asset}: ${why}`,
  )
  if (differences.length > 0) assert.fail([who, ...differences, ...known].join('\n'))
}

type Account = { evm: string; gateway: GatewayView }
type Query = (text: string, values: unknown[]) => Promise<{ rows: { units: string }[] }>
const endedMsMax = 15_000
const concurrency = 8

/** The tasks of a user once all of them have ended. */
async function waitForTasks({ evm, gateway }: Account): Promise<Task[]> {
  for (const untilMs = performance.now() + endedMsMax; ; await delay(50)) {
    const tasks = await gateway.tasks()
    const live = tasks.filter(isLive)
    if (live.length === 0) return tasks
    const left = live.map(({ kind, task_id, state }) => `${kind} ${task_id} ${state}`)
    if (performance.now() > untilMs) throw new Error(`${evm}: still running: ${left.join(', ')}`)
  }
}

/** A user without running tasks has no holds. */
async function heldBy(query: Query, { evm }: { evm: string }): Promise<Comparison> {
  const { rows } = await query(
    `select coalesce(sum(a.held), 0)::text as units from account a join wallet w on w.user_id = a.owner
     where lower(w.address) = lower($1)`,
    [evm],
  )
  return { expected: 0n, found: BigInt(rows[0]!.units) }
}

/** Checks the invariant for each of these users. */
async function assertEach(
  world: World,
  query: Query | undefined,
  accounts: readonly (() => Promise<Account>)[],
): Promise<void> {
  const left = [...accounts]
  const failures: string[] = []
  const check = async (find: () => Promise<Account>) => {
    const account = await find()
    if (isExcluded(account.evm)) return
    const tasks = await waitForTasks(account)
    const has = expectedGrant(tasks, account)
    const lines = await comparisonsOf(world, tasks, await account.gateway.positions(), account, has)
    if (query) lines['held by the ledger'] = await heldBy(query, account)
    assertConserved({ who: account.evm, lines })
  }
  const worker = async () => {
    for (let next = left.pop(); next; next = left.pop())
      await check(next).catch((error: unknown) => failures.push(String(error)))
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  if (failures.length > 0) assert.fail(failures.join('\n'))
}

/** Without the URL of its database the ledger of a gateway is not read. */
export type AuditTarget = { url: string; control: string; databaseUrl?: string | undefined }

/** Checks the invariant for users of a gateway. */
export async function assertAllConserved(
  { url, control, databaseUrl }: AuditTarget,
  owners: readonly (() => Promise<Owner>)[],
): Promise<void> {
  if (owners.length === 0) return
  const database =
    databaseUrl === undefined ? undefined : new pg.Pool({ connectionString: databaseUrl, max: 2 })
  const accounts = owners.map((find) => async () => {
    const owner = await find()
    return { evm: owner.evm, gateway: gatewayView(owner, url) }
  })
  const query: Query | undefined = database && ((text, values) => database.query(text, values))
  try {
    await assertEach(await openWorld(control), query, accounts)
  } finally {
    await database?.end()
  }
}

type AuditSources = {
  control: string
  venue: VenueRecord
  query: Query
  /** Chains that the world of the test runs. */
  chains: readonly string[]
}

/** Checks the invariant without HTTP between test and gateway, and with a venue outside the world. */
export async function assertConservedWith(
  { control, venue, query, chains }: AuditSources,
  accounts: readonly Account[],
): Promise<void> {
  await assertEach(
    await openWorld(control, venue, chains),
    query,
    accounts.map((account) => async () => account),
  )
}
