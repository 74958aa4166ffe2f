/** Where the prediction market's contracts are on Polygon, in the local world as in production. */
export type Address = `0x${string}`
export type Hex = `0x${string}`

export const chainId = 137

export const contracts = {
  pusd: '0xC011a7E12a19f7B1f670d46F03B03f3342E82DFB',
  usdce: '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174',
  usdc: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
  onramp: '0x93070a847efEf7F70739046A929D47a521F5B8ee',
  offramp: '0x2957922Eb93258b93368531d39fAcCA3B4dC5854',
  conditionalTokens: '0x4D97DCd97eC945f40cF65F87097ACe5EA0476045',
  wrappedCollateral: '0x3A3BD7bb9528E159577F7C2e685CC81A765002E2',
  negRiskAdapter: '0xd91E80cF2E7be2e162c6513ceD06f1dD0dA35296',
  collateralAdapter: '0xAdA100Db00Ca00073811820692005400218FcE1f',
  negRiskCollateralAdapter: '0xadA2005600Dec949baf300f4C6120000bDB6eAab',
  standardExchange: '0xE111180000d2663C0091e4f400237545B87B996B',
  negRiskExchange: '0xe2222d279d744050d28e00520010520000310F59',
  exchangeV3: '0xe3333700cA9d93003F00f0F71f8515005F6c00Aa',
  router: '0x12121212006e4CD160D18e3f00711DA5c3372600',
  positionManager: '0x006F54F7f9A22e0000CC2AB60031000000ae9fEF',
  binaryModule: '0x1000008dD9001B968442c1000017eaE6E0dA00Ba',
  negRiskModule: '0x200000900045e3B6259600682756002200028933',
  combinatorialModule: '0x30000034706c7d8e12009dab006be20000c031a8',
  autoRedeem: '0xa1200000d0002264C9a1698e001292D00E1b00af',
  perpsDeposit: '0xDCa4af75705dbB50f62437045afF9921947917d2',
  walletFactory: '0x00000000000Fb5C9ADea0298D729A0CB3823Cc07',
  walletBeacon: '0x7A18EDfe055488A3128f01F563e5B479D92ffc3a',
  walletImplementation: '0x58CA52ebe0DadfdF531Cde7062e76746de4Db1eB',
  safeFactory: '0xaacFeEa03eb1561C4e67d661e40682Bd20E3541b',
  multiSend: '0xA238CBeb142c10Ef7Ad8442C6D1f9E89e07e7761',
  /** Backs every unit of pUSD; its address is of this world alone. */
  vault: '0x7001a00000000000000000000000000000000137',
  /** Exchanges USDC and USDC.e one to one for the vault; of this world alone. */
  dollarDesk: '0x7001A00000000000000000000000000000000138',
  /** The oracle of every market: the resolver's calls are made in its name. */
  oracle: '0x7001A0000000000000000000000000000000013A',
  /** The code behind every Safe of this world. */
  safeImplementation: '0x7001A00000000000000000000000000000000139',
} as const satisfies Record<string, Address>

export type ContractName = keyof typeof contracts

/** The hash of the code that the Safe factory deploys in production: Safes have addresses by it. */
export const safeInitCodeHash: Hex = '0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf'

/** The venue's own accounts, whose keys derive from public labels; the contracts name four of them. */
export const accountAddresses = {
  operator: '0x8B2B6b05f00673c4586D22825888ad411672e492',
  relayer: '0xBd8c2Cc21fcA91F8Cb7F38CDFfd4Da1202601aEB',
  resolver: '0x2db4486A198F293Bc1be4531d676433a631b6C02',
  autoRedeemer: '0xC69fF58966A850AE2008FCC3F5368753AA00a6f0',
  admin: '0x278a802a123E2C0D00302A22127ee669314Fb7Fc',
  maker: '0xb08812BA3CA14ebA529bf8A315a7446b5eCA8FC1',
} as const satisfies Record<string, Address>
