/** What is true of a user and of the markets, read from the nodes, the venue, the prices and the solver, not from the gateway. */
import type { Person } from '../../journeys/users.ts'
import type { World } from '../../journeys/world.ts'
import { type Decimal, div, type Expected, minus, plus, times, units } from './figures-in-text.ts'

type Market = { name: string; maxLeverage: number; isDelisted?: boolean }
type Context = Record<'markPx' | 'prevDayPx' | 'funding' | 'dayNtlVlm' | 'openInterest', Decimal>
type Spot = { name: string; base: string; markPx: Decimal; dayNtlVlm: Decimal }
type Position = {
  coin: string
  szi: Decimal
  entryPx: Decimal
  positionValue: Decimal
  unrealizedPnl: Decimal
  liquidationPx: Decimal | null
  leverage: { value: number }
  cumFunding: { sinceOpen: Decimal }
}
type Order = { coin: string; sz: Decimal; limitPx: Decimal; oid: number }
type Fill = { coin: string; sz: Decimal; px: Decimal; fee: Decimal; closedPnl: Decimal }

const native = '0x0000000000000000000000000000000000000000'
const nativeCoins: Readonly<Record<string, string>> = {
  '1': 'ETH',
  '8453': 'ETH',
  '42161': 'ETH',
  '137': 'POL',
  '7565164': 'SOL',
}
const solanaId = '7565164'
/** As the service of prices and the solver call them. */
const priceChains: Readonly<Record<string, string>> = {
  '1': 'ethereum',
  '8453': 'base',
  '42161': 'arbitrum',
  '137': 'polygon',
  [solanaId]: 'solana',
}
const solverChain = (chainId: string): number => (chainId === solanaId ? 792_703_809 : Number(chainId))

type Place = { address: string; decimals: number; isNative: boolean }
/** The gateway may keep a list of markets for so long. */
const marketsMaxAgeMs = 75_000
type Perps = ReadonlyMap<string, Market & Context>

type Deps = { person: Person; world: World; paidUsd: Decimal }

export function worldFacts({ person, world, paidUsd }: Deps) {
  const { urls, tokens, contracts } = world.manifest
  const send = async <B>(url: string, body?: object): Promise<B> => {
    const reply = await fetch(url, {
      ...(body && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    })
    if (!reply.ok) throw new Error(`${url}: ${reply.status} ${await reply.text()}`)
    return (await reply.json()) as B
  }
  const info = <B>(type: string, more: object = {}) => send<B>(`${urls.hyperliquid}/info`, { type, ...more })
  const ofUser = { user: person.evm }

  const placeOf = (symbol: string, chainId: string): Place => {
    if (nativeCoins[chainId] === symbol) {
      const decimals = chainId === solanaId ? 9 : 18
      return { address: chainId === solanaId ? '1'.repeat(32) : native, decimals, isNative: true }
    }
    const found = tokens[chainId]?.find((each) => each.symbol === symbol)
    const address = found?.address ?? found?.mint
    if (!found || address === undefined) throw new Error(`no ${symbol} on ${chainId}`)
    return { address, decimals: found.decimals, isNative: false }
  }
  const chainsOf = (symbol: string): string[] =>
    Object.keys(tokens).filter(
      (chainId) => nativeCoins[chainId] === symbol || tokens[chainId]?.some((each) => each.symbol === symbol),
    )

  async function balanceUnits(symbol: string, chainId: string): Promise<bigint> {
    const { address, isNative } = placeOf(symbol, chainId)
    if (chainId !== solanaId)
      return world.balance(chainId as keyof typeof urls.evm, person.evm, isNative ? undefined : address)
    if (isNative) return world.solOf(person.solana)
    const query = [person.solana, { mint: address }, { encoding: 'jsonParsed', commitment: 'confirmed' }]
    const { value } = (await world.rpc('getTokenAccountsByOwner', query, urls.solana)) as {
      value: { account: { data: { parsed: { info: { tokenAmount: { amount: string } } } } } }[]
    }
    return value.reduce((sum, { account }) => sum + BigInt(account.data.parsed.info.tokenAmount.amount), 0n)
  }
  const balance = async (symbol: string, chainId: string): Promise<Decimal> =>
    units(await balanceUnits(symbol, chainId), placeOf(symbol, chainId).decimals)

  async function price(symbol: string, chainId: string): Promise<Decimal> {
    const { address, isNative } = placeOf(symbol, chainId)
    const coins: Record<string, string> = { ETH: 'ethereum', SOL: 'solana' }
    const key = isNative ? `coingecko:${coins[symbol]}` : `${priceChains[chainId]}:${address}`
    const reply = await send<{ coins: Record<string, { price: number }> }>(
      `${urls.prices}/prices/current/${key}`,
    )
    const found = reply.coins[key]
    if (!found) throw new Error(`no price of ${key}`)
    return String(found.price)
  }

  const seen: { atMs: number; perps: Perps }[] = []
  async function perps(): Promise<Perps> {
    const [{ universe }, contexts] = await info<[{ universe: Market[] }, Context[]]>('metaAndAssetCtxs')
    const found = new Map(universe.map((market, at) => [market.name, { ...market, ...contexts[at]! }]))
    seen.push({ atMs: Date.now(), perps: found })
    return found
  }
  async function spot(symbol: string): Promise<Spot> {
    type Meta = { tokens: { name: string; index: number }[]; universe: { name: string; tokens: number[] }[] }
    const [meta, contexts] = await info<[Meta, (Context & { coin: string })[]]>('spotMetaAndAssetCtxs')
    const token = meta.tokens.find(({ name }) => name === symbol)!
    const market = meta.universe.find((each) => each.tokens[0] === token.index)!
    const { markPx, dayNtlVlm } = contexts.find(({ coin }) => coin === market.name)!
    return { name: market.name, base: symbol, markPx, dayNtlVlm }
  }
  type Summary = {
    marginSummary: { accountValue: Decimal }
    withdrawable: Decimal
    assetPositions: { position: Position }[]
  }
  const account = () => info<Summary>('clearinghouseState', ofUser)
  const position = async (coin: string): Promise<Position> =>
    (await account()).assetPositions.find((each) => each.position.coin === coin)!.position
  const spotHeld = async (coin: string): Promise<{ total: Decimal; hold: Decimal }> =>
    (
      await info<{ balances: { coin: string; total: Decimal; hold: Decimal }[] }>(
        'spotClearinghouseState',
        ofUser,
      )
    ).balances.find((each) => each.coin === coin)!
  const orderOf = async (coin: string): Promise<Order> =>
    (await info<Order[]>('openOrders', ofUser)).find((each) => each.coin === coin)!

  const change = ({ markPx, prevDayPx }: Context): Decimal =>
    times(div(minus(markPx, prevDayPx), prevDayPx), '100')
  const hourly = ({ funding }: Context): Decimal => times(funding, '100')

  /** The best of each order, as the list of the venue has them. */
  function ranking(listing: Perps, sort: string, count: number): Expected[] {
    const keys: Record<string, (context: Context) => number> = {
      gainers: (each) => Number(each.markPx) / Number(each.prevDayPx),
      losers: (each) => -Number(each.markPx) / Number(each.prevDayPx),
      volume: ({ dayNtlVlm }) => Number(dayNtlVlm),
      funding: ({ funding }) => Number(funding),
      open_interest: (each) => Number(each.openInterest) * Number(each.markPx),
    }
    const key = keys[sort]!
    const listed = [...listing.values()].filter(({ isDelisted }) => !isDelisted)
    const sorted = listed.toSorted((a, b) => key(b) - key(a))
    return [
      ...sorted.slice(0, count).map((each) => ({
        words: [`${each.name}:`],
        numbers: [each.markPx, change(each), each.dayNtlVlm, hourly(each)],
      })),
      { words: ['more.'], numbers: [String(sorted.length - count)] },
    ]
  }

  async function worthOf(symbol: string, chainId: string): Promise<Decimal> {
    return times(await balance(symbol, chainId), await price(symbol, chainId))
  }
  /** Of a token on all chains, or of a chain with all its tokens. */
  async function total(of: string): Promise<Decimal> {
    const places = /^\d+$/.test(of)
      ? [nativeCoins[of]!, ...tokens[of]!.map(({ symbol }) => symbol)].map((symbol) => [symbol, of] as const)
      : chainsOf(of).map((chainId) => [of, chainId] as const)
    let sum: Decimal = '0'
    for (const [symbol, chainId] of places)
      if ((await balanceUnits(symbol, chainId)) > 0n) sum = plus(sum, await worthOf(symbol, chainId))
    return sum
  }

  /** The solver, asked as any of its clients asks it. */
  async function quote(
    pair: string,
    chainId: string,
    amount: Decimal,
    toChain = chainId,
  ): Promise<Expected[]> {
    const [paid = '', got = ''] = pair.split('>')
    const [from, to] = [placeOf(paid, chainId), placeOf(got, toChain)]
    const addressOn = (id: string) => (id === solanaId ? person.solana : person.evm)
    const { details } = await send<{
      details: {
        currencyOut: { amount: string; minimumAmount: string }
        totalImpact: { percent: Decimal }
      }
    }>(`${urls.solver}/quote/v2`, {
      user: addressOn(chainId),
      recipient: addressOn(toChain),
      originChainId: solverChain(chainId),
      destinationChainId: solverChain(toChain),
      originCurrency: from.address,
      destinationCurrency: to.address,
      amount: String((BigInt(Math.round(Number(amount) * 1e6)) * 10n ** BigInt(from.decimals)) / 1_000_000n),
      tradeType: 'EXACT_INPUT',
      slippageTolerance: '100',
    })
    const { amount: out, minimumAmount } = details.currencyOut
    return [
      {
        words: [`${paid} and get about`, `${got}; price impact`],
        numbers: [
          amount,
          units(BigInt(out), to.decimals),
          units(BigInt(minimumAmount), to.decimals),
          minus('0', details.totalImpact.percent),
        ],
      },
    ]
  }

  async function vaultAssets(): Promise<Decimal> {
    const shares = await world.sharesOf(person.evm)
    const data = `0x07a2d13a${shares.toString(16).padStart(64, '0')}`
    return units(
      BigInt((await world.rpc('eth_call', [{ to: contracts['8453']!.vault, data }, 'latest'])) as string),
      6,
    )
  }

  /** The lines of an answer that have numbers, by the name of a fact. */
  async function expected(fact: string, listing: Perps): Promise<Expected[]> {
    const perp = (symbol: string) => listing.get(symbol)!
    const [name = '', a = '', b = '', c = '', d] = fact.split(':')
    switch (name) {
      case 'perp': {
        const market = perp(a)
        return [{ words: [`${a}:`], numbers: [market.markPx, change(market), hourly(market)] }]
      }
      case 'funding': {
        const market = perp(a)
        return [{ words: [`${a}: funding`], numbers: [hourly(market), market.markPx] }]
      }
      case 'top':
        return ranking(listing, a, Number(b))
      case 'leverage':
        return [{ words: [a, 'leverage'], numbers: [String(perp(a).maxLeverage)] }]
      case 'spot': {
        const { markPx, dayNtlVlm } = await spot(a)
        return [{ words: [`${a}:`, 'spot venue'], numbers: [markPx, dayNtlVlm] }]
      }
      case 'heldprice':
        return [{ words: [`${a}:`], numbers: [await price(a, b)] }]
      case 'wallet': {
        const value = a === 'USDC' || (await balanceUnits(a, b)) > 0n ? await worthOf(a, b) : '0'
        return [{ words: [` ${a} on `, 'worth'], numbers: [await balance(a, b), value] }]
      }
      case 'total':
        return [{ words: ['Together'], numbers: [await total(a)] }]
      case 'account': {
        const { marginSummary, withdrawable } = await account()
        return [{ words: ['Perpetual account'], numbers: [marginSummary.accountValue, withdrawable] }]
      }
      case 'spotheld': {
        const { total: all, hold } = await spotHeld(a)
        return [{ words: [`${a} at the spot venue`], numbers: [all, hold] }]
      }
      case 'pnl': {
        const { szi, unrealizedPnl, cumFunding, entryPx } = await position(a)
        const side = szi.startsWith('-') ? 'short' : 'long'
        return [{ words: [`${a} ${side}:`], numbers: [unrealizedPnl, cumFunding.sinceOpen, entryPx] }]
      }
      case 'walletpnl': {
        const held = await balance(a, '8453')
        const gain = minus(times(held, await price(a, '8453')), paidUsd)
        return [{ words: [`${a} on Base: unrealised`], numbers: [gain, div(paidUsd, held)] }]
      }
      case 'position': {
        const { szi, entryPx, leverage, unrealizedPnl, cumFunding, liquidationPx } = await position(a)
        const { markPx } = perp(a)
        return [
          {
            words: [`${a} ${szi.startsWith('-') ? 'short' : 'long'}`, 'entry'],
            numbers: [
              szi.replace('-', ''),
              entryPx,
              markPx,
              String(leverage.value),
              unrealizedPnl,
              cumFunding.sinceOpen,
              ...(liquidationPx === null ? [] : [liquidationPx]),
            ],
          },
        ]
      }
      case 'order': {
        const { sz, limitPx, oid } = await orderOf(a)
        return [{ words: [`${a} buy`], numbers: [sz, limitPx, String(oid)] }]
      }
      case 'spotorder': {
        const { sz, limitPx, oid } = await orderOf((await spot(a)).name)
        return [{ words: [`${a} sell`], numbers: [sz, limitPx, String(oid)] }]
      }
      case 'fill': {
        const fills = await info<Fill[]>('userFills', ofUser)
        const fill = fills.find(({ coin }) => coin === a)!
        return [
          {
            words: [`${a} `, 'fee'],
            numbers: [fill.sz, fill.px, fill.fee, minus(fill.closedPnl, fill.fee)],
          },
        ]
      }
      case 'hook':
        return [{ words: ['Stop loss on cbBTC'], numbers: ['80000', '100'] }]
      case 'stop':
        return [{ words: ['Stop loss on cbBTC at'], numbers: ['80000'] }]
      case 'limit':
        return [{ words: ['USDC for ETH at'], numbers: ['50', '2500'] }]
      case 'quote':
        return quote(a, b, c, d)
      case 'vault':
        return [{ words: ['smallest deposit'], numbers: ['1'] }]
      case 'vaultheld': {
        const assets = await vaultAssets()
        return [{ words: ['USDC in the vault'], numbers: [assets, '150', minus(assets, '150')] }]
      }
      case 'setup': {
        const { marginSummary } = await account()
        return [{ words: ['Set up before: yes'], numbers: [marginSummary.accountValue, '5'] }]
      }
      case 'taxed':
        // What `TAXED` of the world takes of each transfer.
        return [{ words: ['on chain', 'flagged', 'sell tax'], numbers: [solanaId, '5', '5'] }]
      case 'judged':
        return [{ words: ['on chain', 'risk'], numbers: [a] }]
      case 'pack':
        return [{ words: ['buy', 'credits.'], numbers: [a, b] }]
      case 'limits':
        return [{ words: ['Each transaction'], numbers: ['25000', '100000', null, null] }]
      case 'chains':
        return Object.keys(priceChains).map((chainId) => ({
          words: [`chain ${chainId}`],
          numbers: [chainId],
        }))
      case 'address':
        return [{ words: [a === 'evm' ? person.evm : person.solana], numbers: [] }]
      default:
        throw new Error(`no fact ${fact}`)
    }
  }

  /** A value of a recommendation: `USDC@8453` is an address, `=1/2 JUP` so many units of what is held. */
  async function written(value: unknown, ids: Readonly<Record<string, string>>): Promise<unknown> {
    if (Array.isArray(value)) return Promise.all(value.map((each) => written(each, ids)))
    if (typeof value !== 'string') return value
    const token = /^(\w+)@(\d+)$/.exec(value)
    if (token) {
      const { address, isNative } = placeOf(token[1]!, token[2]!)
      return isNative && token[2] !== solanaId ? '0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE' : address
    }
    const share = /^=(\d+)\/(\d+) (?:(position|free) )?(\w+)(?:@(\d+))?$/.exec(value)
    if (!share) return value.startsWith('=') ? ids[value.slice(1)] : value
    const [, over = '1', under = '1', kind, symbol = '', chainId] = share
    if (kind === undefined) {
      const [only] = chainId === undefined ? await heldOn(symbol) : [chainId]
      return String(((await balanceUnits(symbol, only!)) * BigInt(over)) / BigInt(under))
    }
    const [whole, places] =
      kind === 'position'
        ? [(await position(symbol)).szi.replace('-', ''), await sizeDecimals(symbol)]
        : [minus((await spotHeld(symbol)).total, (await spotHeld(symbol)).hold), 2]
    const scale = 10 ** places
    return String(Math.floor((Number(whole) * Number(over) * scale) / Number(under) + 1e-9) / scale)
  }
  const sizeDecimals = async (symbol: string): Promise<number> => {
    const { universe } = await info<{ universe: { name: string; szDecimals: number }[] }>('meta')
    return universe.find(({ name }) => name === symbol)!.szDecimals
  }
  async function heldOn(symbol: string): Promise<string[]> {
    const held: string[] = []
    for (const chainId of chainsOf(symbol)) if ((await balanceUnits(symbol, chainId)) > 0n) held.push(chainId)
    return held
  }

  return {
    /** Reads the markets now; a later answer may be about these or newer ones. */
    look: perps,
    /** What may be said, by each list of markets of the last minute, the newest first. */
    async expected(names: readonly string[]): Promise<Expected[][]> {
      await perps()
      const recent = seen.filter(({ atMs }) => Date.now() - atMs < marketsMaxAgeMs)
      const different = new Map(recent.map((each) => [JSON.stringify([...each.perps.values()]), each.perps]))
      const all: Expected[][] = []
      for (const listing of [...different.values()].reverse())
        all.push((await Promise.all(names.map((name) => expected(name, listing)))).flat())
      return all
    },
    written,
    /** Addresses of tokens that a question names by `@SYMBOL`. */
    withAddresses: (text: string): string =>
      text.replace(/@([A-Z]+)/g, (_, symbol: string) => placeOf(symbol, solanaId).address),
  }
}
export type WorldFacts = ReturnType<typeof worldFacts>
