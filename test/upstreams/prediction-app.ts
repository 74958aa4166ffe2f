/** The adapter of the prediction market on one world with Polygon and the venue, and accounts that trade through it. */
import { randomUUID } from 'node:crypto'
import { privateKeyToAddress } from 'viem/accounts'
import { systemClock } from '#kernel/clock.ts'
import { noFailpoints } from '#kernel/failpoint.ts'
import { systemRandom } from '#kernel/id.ts'
import { silentLog } from '#kernel/log.ts'
import type { PredictionAction, VenueWallet, WalletCall } from '#kernel/money/prediction-actions.ts'
import type { ChainReader, RelayState } from '#kernel/money/prediction-setup.ts'
import type {
  OrderRequest,
  OrderTerms,
  PredictionVenue,
  VenueCredentials,
} from '#kernel/money/prediction-venue.ts'
import type { OutcomeTrade, PredictionMarket } from '#kernel/money/prediction-views.ts'
import { createHttpClient } from '#upstreams/http-client.ts'
import { createPolymarket } from '#upstreams/polymarket/polymarket.ts'
import { polymarketCrypto } from '#upstreams/polymarket/sign.ts'
import { eventually } from '../harness/gateway.ts'
import { oncePerProcess } from '../harness/once-per-process.ts'
import { ownWorld } from '../harness/own-world.ts'

type Control = <T = Record<string, unknown>>(method: string, path: string, body?: unknown) => Promise<T>
export type Balances = { pusd: string; shares: Record<string, string> }

const readJson = async <T>(url: string, init: RequestInit = {}): Promise<T> =>
  (await (await fetch(url, init)).json()) as T

export const predictionApp = oncePerProcess(async () => {
  const world = await ownWorld(['137', 'polymarket'])
  const { polymarket: urls, evm, control: controlUrl } = world.urls
  const control: Control = async <T>(method: string, path: string, body?: unknown) => {
    const reply = await fetch(`${controlUrl}/venues/polymarket${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${method} ${path}: ${text}`)
    return JSON.parse(text) as T
  }
  const builder = await control<{ key: string; secret: string; passphrase: string }>(
    'POST',
    '/builder-key',
    {},
  )
  const net = createHttpClient({ failpoints: noFailpoints })
  const options = { urls, net, clock: systemClock, random: systemRandom, log: silentLog }
  const venue = createPolymarket({ ...options, relayerKey: { type: 'builder', ...builder } })

  const rpc = async (method: string, params: unknown[]): Promise<string | null> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    const { result } = await readJson<{ result?: string }>(evm['137'], { method: 'POST', headers, body })
    return result ?? null
  }
  const reader: ChainReader = {
    code: async (address) => (await rpc('eth_getCode', [address, 'latest'])) ?? '0x',
    call: (calls) => Promise.all(calls.map((call) => rpc('eth_call', [call, 'latest']))),
  }
  const balances = (wallet: string, tokens: readonly string[] = []) =>
    control<Balances>('GET', `/balances?wallet=${wallet}&tokens=${tokens.join()}`)
  return {
    venue,
    options,
    control,
    reader,
    balances,
    urls,
    async [Symbol.asyncDispose]() {
      await net[Symbol.asyncDispose]()
      await world[Symbol.asyncDispose]()
    },
  }
})

type App = Awaited<ReturnType<typeof predictionApp>>

/** An owner with a key at the venue, and the wallet of the given kind; nothing of it is deployed yet. */
export async function openAccount(
  { venue }: App,
  number: number,
  kind: VenueWallet['kind'] = 'deposit_wallet',
) {
  const key = `0x${number.toString(16).padStart(64, '0')}` as const
  const owner = privateKeyToAddress(key)
  const sign = (action: PredictionAction) => polymarketCrypto.sign(Buffer.from(key.slice(2), 'hex'), action)
  const wallet = venue.walletsOf(owner).find((each) => each.kind === kind)!
  const action = venue.signInAction(owner)
  const credentials = await venue.signIn(action, await sign(action))
  return { owner, wallet, sign, credentials }
}
export type Account = Awaited<ReturnType<typeof openAccount>>

const setupOf = (venue: PredictionVenue) => {
  if (!venue.setup) throw new Error('the venue has a relayer')
  return venue.setup
}

export const relayed = async ({ venue }: App, relayId: string): Promise<RelayState> =>
  eventually(async () => {
    const found = await setupOf(venue).relayer.state(relayId)
    return found?.state === 'pending' ? undefined : found
  }, 'the relayed action')

export async function submit(app: App, body: string): Promise<RelayState> {
  const reply = await setupOf(app.venue).relayer.submit(body)
  if (reply.type !== 'accepted') throw new Error(JSON.stringify(reply, (_, value) => String(value)))
  return relayed(app, reply.relayId)
}

/** Sends calls of a wallet through the relayer, and waits for them. */
export async function relayCalls(
  app: App,
  { wallet, sign }: Account,
  calls: WalletCall[],
): Promise<RelayState> {
  const { relayer, walletBatch } = setupOf(app.venue)
  const action = walletBatch(wallet, calls, await relayer.nonce(wallet))
  return submit(app, relayer.body(action, await sign(action), 'a test'))
}

/** Opens an account, and does every step of the venue's setup. */
export async function readyAccount(app: App, number: number, usd = '1000'): Promise<Account> {
  const { venue, reader, control } = app
  const account = await openAccount(app, number)
  const { wallet, owner } = account
  const { steps, relayer } = setupOf(venue)
  const missing = async () => {
    const all = await steps(wallet, { hasKey: true, protocols: venue.protocols, reader })
    return all.filter(({ isDone }) => !isDone)
  }
  if ((await missing()).some(({ act }) => act.type === 'create_wallet'))
    await submit(app, relayer.createWalletBody(owner))
  const calls = (await missing()).flatMap(({ act }) => (act.type === 'wallet_calls' ? act.calls : []))
  if (calls.length > 0) await relayCalls(app, account, calls)
  await control('POST', '/credit', { wallet: wallet.wallet, amount: usd })
  return account
}

/** A market whose middle price stays where it is put. */
export async function pinnedMarket(
  { venue, control }: App,
  slug: string,
  price: number,
): Promise<PredictionMarket> {
  await control('POST', '/price', { market: slug, price })
  const market = await venue.market({ slug })
  if (!market) throw new Error(`no market ${slug}`)
  return market
}

type OrderOptions = Partial<Omit<OrderRequest, 'wallet' | 'outcome' | 'terms'>> & { outcome?: number }
/** Prepares and signs an order, and returns it with its body. */
export async function signOrder(
  { venue }: App,
  { account, market }: { account: Account; market: PredictionMarket },
  terms: OrderTerms,
  { outcome = 0, ...options }: OrderOptions = {},
) {
  const { wallet, sign, credentials } = account
  const { marketId } = market
  const { outcomeId } = market.outcomes[outcome]!
  const prepared = await venue.prepareOrder({
    identity: randomUUID(),
    wallet,
    outcome: { venue: venue.name, marketId, outcomeId },
    terms,
    timeInForce: terms.type === 'market' ? 'fok' : 'gtc',
    postOnly: false,
    expiresAt: null,
    ...options,
  })
  const body = venue.orderBody(prepared, await sign(prepared.action), credentials.key)
  return { prepared, body }
}

export const settledTrades = (
  { venue }: App,
  { wallet, credentials }: { wallet: VenueWallet; credentials: VenueCredentials },
  orderId: string,
): Promise<OutcomeTrade[]> =>
  eventually(async () => {
    const all = await venue.trades({}, wallet, credentials)
    const own = all.filter((trade) => trade.orderId === orderId)
    return own.length > 0 && own.every(({ settlement }) => settlement === 'confirmed') ? own : undefined
  }, 'the settlement')

export { eventually }
