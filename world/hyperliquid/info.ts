import { bucketStart, type Interval, intervals } from './candles.ts'
import { priceText, unitsText } from './decimal.ts'
import * as account from './info-account.ts'
import * as history from './info-history.ts'
import * as market from './info-market.ts'
import { type Market, marketNamed, maxMarketOrderUsd, perps, tokens } from './markets.ts'
import { readType, rejectMalformed } from './schema.ts'
import { twapHistory, twapStates } from './twap.ts'
import { midOf, stateOf, type Venue } from './venue.ts'
import { type Json, tradeView } from './views.ts'

type Body = Record<string, unknown>
type View = (venue: Venue, body: Body) => Json

const user = ({ user: value }: Body): string =>
  typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value) ? value.toLowerCase() : rejectMalformed()

const text = (value: unknown): string => (typeof value === 'string' ? value : rejectMalformed())

const time = (value: unknown): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : rejectMalformed()

const window = ({ startTime, endTime }: Body) => ({
  fromMs: time(startTime),
  toMs: endTime === undefined || endTime === null ? Number.MAX_SAFE_INTEGER : time(endTime),
})

const anyWindow = (body: Body) => window({ ...body, startTime: body.startTime ?? 0 })

/** The one perpetual exchange of this venue; it has no name. */
const assertDefaultDex = ({ dex }: Body): void => {
  if (dex !== undefined && dex !== null && dex !== '') rejectMalformed()
}

const coinOf = (body: Body): Market | undefined => marketNamed(text(body.coin))

const perpNamed = (body: Body) => {
  const found = coinOf(body)
  return found?.kind === 'perp' ? found : rejectMalformed()
}

const figures = (value: unknown): number | null => {
  if (value === undefined || value === null) return null
  return [2, 3, 4, 5].includes(value as number) ? (value as number) : rejectMalformed()
}

const mantissa = (value: unknown): number | null => {
  if (value === undefined || value === null) return null
  return [1, 2, 5].includes(value as number) ? (value as number) : rejectMalformed()
}

const candlesMax = 5_000

const candleSnapshot: View = (venue, { req }) => {
  if (typeof req !== 'object' || req === null) return rejectMalformed()
  const body = req as Body
  const found = coinOf(body)
  const interval = text(body.interval)
  if (!(interval in intervals)) return rejectMalformed()
  const fromMs = time(body.startTime)
  const toMs = body.endTime === undefined || body.endTime === null ? venue.state.nowMs : time(body.endTime)
  if (!found) return []
  const at = interval as Interval
  return market
    .candlesOf(venue, found, at, { fromMs: bucketStart(fromMs, at), toMs })
    .slice(-candlesMax)
    .map((candle) => market.candleView(found, at, candle))
}

const tokenDetails: View = (venue, { tokenId }) => {
  const id = text(tokenId).toLowerCase()
  const token = tokens.find((known) => known.tokenId === id) ?? rejectMalformed()
  const asset = 10_000 + token.index - 1
  const price = token.index === 0 ? '1.0' : priceText(Math.round(midOf(venue, asset) ?? 0))
  const supply = `${token.supply}.0`
  return {
    name: token.name,
    maxSupply: supply,
    totalSupply: supply,
    circulatingSupply: supply,
    szDecimals: token.sizeDecimals,
    weiDecimals: token.weiDecimals,
    midPx: price,
    markPx: price,
    prevDayPx: price,
    genesis: null,
    deployer: null,
    deployGas: null,
    deployTime: null,
    seededUsdc: '0.0',
    nonCirculatingUserBalances: [],
    futureEmissions: '0.0',
  }
}

const referral: View = (venue, body) => ({
  referredBy: null,
  cumVlm: unitsText(account.accountOrEmpty(venue, user(body)).volume),
  unclaimedRewards: '0.0',
  claimedRewards: '0.0',
  builderRewards: unitsText(venue.state.builderFees.get(user(body)) ?? 0n),
  referrerState: { stage: 'needToTrade', data: { required: '10000.0' } },
  rewardHistory: [],
  tokenToState: [],
})

export const webData2: View = (venue, body) => {
  const address = user(body)
  const unnamed = [...venue.state.agents].find(([, agent]) => agent.user === address && agent.name === '')
  return {
    clearinghouseState: account.clearinghouseState(venue, address),
    leadingVaults: [],
    totalVaultEquity: '0.0',
    openOrders: history.frontendOpenOrders(venue, address),
    agentAddress: unnamed?.[0] ?? null,
    agentValidUntil: unnamed?.[1].validUntilMs ?? null,
    cumLedger: unitsText(netLedgerFlow(venue, address)),
    meta: market.meta(),
    assetCtxs: market.perpContexts(venue),
    serverTime: venue.state.nowMs,
    isVault: false,
    user: address,
    twapStates: twapStates(venue, address),
    spotState: account.spotClearinghouseState(venue, address),
    spotAssetCtxs: market.spotContexts(venue),
  }
}

/** Deposits less withdrawals. */
const netLedgerFlow = (venue: Venue, address: string): bigint => {
  let sum = 0n
  for (const { delta } of account.accountOrEmpty(venue, address).ledger) {
    const units = BigInt(Math.round(Number(delta.usdc ?? 0) * 1e6)) * 100n
    if (delta.type === 'deposit') sum += units
    if (delta.type === 'withdraw') sum -= units
  }
  return sum < 0n ? 0n : sum
}

const emptyList: View = (_venue, body) => {
  user(body)
  return []
}
const nullAnswer: View = (_venue, body) => {
  user(body)
  return null
}

const views: Record<string, View> = {
  meta: (_venue, body) => {
    assertDefaultDex(body)
    return market.meta()
  },
  allPerpMetas: () => [market.meta()],
  metaAndAssetCtxs: (venue, body) => {
    assertDefaultDex(body)
    return [market.meta(), market.perpContexts(venue)]
  },
  spotMeta: () => market.spotMeta(),
  spotMetaAndAssetCtxs: (venue) => [market.spotMeta(), market.spotContexts(venue)],
  perpDexs: () => [null],
  perpCategories: () => [],
  perpConciseAnnotations: () => [],
  marginTable: (_venue, { id }) => market.marginTable(time(id)) ?? rejectMalformed(),
  allMids: (venue, body) => {
    assertDefaultDex(body)
    return market.allMids(venue)
  },
  l2Book: (venue, body) => {
    const found = coinOf(body)
    return found ? market.l2Book(venue, found, figures(body.nSigFigs), mantissa(body.mantissa)) : null
  },
  recentTrades: (venue, body) => {
    const found = coinOf(body)
    return found ? stateOf(venue, found.asset).trades.slice(-100).reverse().map(tradeView) : []
  },
  candleSnapshot,
  tokenDetails,
  exchangeStatus: (venue) => ({ time: venue.state.nowMs, specialStatuses: null }),
  predictedFundings: (venue) =>
    perps.filter(({ delisted }) => !delisted).map((perp) => history.predictedFunding(venue, perp)),
  fundingHistory: (venue, body) => history.fundingHistory(venue, text(body.coin), window(body)),
  perpsAtOpenInterestCap: () => [],
  maxMarketOrderNtls: () => maxMarketOrderUsd.map(([leverage, usd]) => [leverage, `${usd}.0`]),
  clearinghouseState: (venue, body) => {
    assertDefaultDex(body)
    return account.clearinghouseState(venue, user(body))
  },
  spotClearinghouseState: (venue, body) => account.spotClearinghouseState(venue, user(body)),
  activeAssetData: (venue, body) => account.activeAssetData(venue, user(body), perpNamed(body)),
  userFees: (venue, body) => account.userFees(venue, user(body)),
  userRateLimit: (venue, body) => account.userRateLimit(venue, user(body)),
  userRole: (venue, body) => account.userRole(venue, user(body)),
  extraAgents: (venue, body) => account.extraAgents(venue, user(body)),
  userAbstraction: (venue, body) => account.abstractionOf(venue, user(body)),
  userDexAbstraction: (venue, body) => account.accountOrEmpty(venue, user(body)).dexAbstraction ?? null,
  outcomeMeta: () => ({ outcomes: [], questions: [] }),
  portfolio: (venue, body) => account.portfolio(venue, user(body)),
  referral,
  webData2,
  openOrders: (venue, body) => {
    assertDefaultDex(body)
    return history.openOrders(venue, user(body))
  },
  frontendOpenOrders: (venue, body) => {
    assertDefaultDex(body)
    return history.frontendOpenOrders(venue, user(body))
  },
  orderStatus: (venue, body) => {
    const { oid } = body
    if (typeof oid === 'string' && /^0x[0-9a-fA-F]{32}$/.test(oid))
      return history.orderStatus(venue, user(body), oid.toLowerCase())
    return history.orderStatus(venue, user(body), time(oid))
  },
  historicalOrders: (venue, body) => history.historicalOrders(venue, user(body)),
  userFills: (venue, body) => history.userFills(venue, user(body)),
  userFillsByTime: (venue, body) => history.userFillsByTime(venue, user(body), window(body)),
  userFunding: (venue, body) => history.userFunding(venue, user(body), anyWindow(body)),
  userNonFundingLedgerUpdates: (venue, body) => history.ledgerUpdates(venue, user(body), anyWindow(body)),
  approvedBuilders: (venue, body) =>
    [...account.accountOrEmpty(venue, user(body)).builders]
      .filter(([, tenths]) => tenths > 0)
      .map(([address]) => address),
  maxBuilderFee: (venue, body) =>
    account.accountOrEmpty(venue, user(body)).builders.get(user({ user: body.builder })) ?? 0,
  preTransferCheck: (venue, body) => ({
    fee: '0.0',
    isSanctioned: false,
    userExists: venue.state.accounts.has(user(body)),
    userHasSentTx: venue.state.nonces.has(user(body)),
  }),
  legalCheck: (_venue, body) => {
    user(body)
    return { acceptedTerms: true, userAllowed: true, restrictions: 'n' }
  },
  delegatorSummary: (_venue, body) => {
    user(body)
    return { delegated: '0.0', undelegated: '0.0', totalPendingWithdrawal: '0.0', nPendingWithdrawals: 0 }
  },
  subAccounts: (venue, body) => account.subAccounts(venue, user(body)),
  subAccounts2: nullAnswer,
  isVip: nullAnswer,
  userToMultiSigSigners: nullAnswer,
  userVaultEquities: emptyList,
  leadingVaults: emptyList,
  delegations: emptyList,
  delegatorHistory: emptyList,
  delegatorRewards: emptyList,
  twapHistory: (venue, body) => twapHistory(venue, user(body)),
  userTwapSliceFills: (venue, body) => history.twapSliceFills(venue, user(body)),
  userTwapSliceFillsByTime: (venue, body) =>
    history.twapSliceFills(venue, user(body), window(body)).reverse(),
  vaultSummaries: () => [],
  liquidatable: () => [],
}

export const infoTypes = Object.keys(views)

/** An unknown request is rejected with an error, so that gaps are visible. */
export const answerInfo = (venue: Venue, body: unknown): Json => {
  const type = readType(body)
  const view = Object.hasOwn(views, type) ? views[type] : undefined
  return view ? view(venue, body as Body) : rejectMalformed()
}
