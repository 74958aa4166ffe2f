/**
 * The venue's contracts on Polygon.
 * https://docs.polymarket.com/resources/contract-addresses
 */

export type Hex = `0x${string}`

export const chainId = 137

/** Bytes that name nobody and nothing. */
export const zero32 = `0x${'0'.repeat(64)}`

export const contracts = {
  pusd: '0xC011a7E12a19f7B1f670d46F03B03f3342E82DFB',
  usdce: '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174',
  usdc: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
  onramp: '0x93070a847efEf7F70739046A929D47a521F5B8ee',
  offramp: '0x2957922Eb93258b93368531d39fAcCA3B4dC5854',
  conditionalTokens: '0x4D97DCd97eC945f40cF65F87097ACe5EA0476045',
  collateralAdapter: '0xAdA100Db00Ca00073811820692005400218FcE1f',
  negRiskCollateralAdapter: '0xadA2005600Dec949baf300f4C6120000bDB6eAab',
  standardExchange: '0xE111180000d2663C0091e4f400237545B87B996B',
  negRiskExchange: '0xe2222d279d744050d28e00520010520000310F59',
  exchangeV3: '0xe3333700cA9d93003F00f0F71f8515005F6c00Aa',
  router: '0x12121212006e4CD160D18e3f00711DA5c3372600',
  positionManager: '0x006F54F7f9A22e0000CC2AB60031000000ae9fEF',
  binaryModule: '0x1000008dD9001B968442c1000017eaE6E0dA00Ba',
  negRiskModule: '0x200000900045e3B6259600682756002200028933',
  autoRedeem: '0xa1200000d0002264C9a1698e001292D00E1b00af',
  walletFactory: '0x00000000000Fb5C9ADea0298D729A0CB3823Cc07',
  walletBeacon: '0x7A18EDfe055488A3128f01F563e5B479D92ffc3a',
  walletImplementation: '0x58CA52ebe0DadfdF531Cde7062e76746de4Db1eB',
  safeFactory: '0xaacFeEa03eb1561C4e67d661e40682Bd20E3541b',
  multiSend: '0xA238CBeb142c10Ef7Ad8442C6D1f9E89e07e7761',
} as const satisfies Record<string, Hex>

/** The hash of the code that the Safe factory deploys; the addresses of Safes derive from it. */
export const safeInitCodeHash: Hex = '0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf'

/** The exchange that settles an order, with the version of its signing domain. */
export const exchanges = {
  standard: { address: contracts.standardExchange, domainVersion: '2' },
  neg_risk: { address: contracts.negRiskExchange, domainVersion: '2' },
  v3: { address: contracts.exchangeV3, domainVersion: '3' },
} as const
export type ExchangeName = keyof typeof exchanges

export type Protocol = 'v1' | 'v2'
export const protocols: readonly Protocol[] = ['v1', 'v2']

export const exchangeOf = (protocol: Protocol, { isNegRisk }: { isNegRisk: boolean }): ExchangeName => {
  if (protocol === 'v2') return 'v3'
  return isNegRisk ? 'neg_risk' : 'standard'
}
