export type Address = `0x${string}`
export type ChainId = '1' | '8453' | '42161' | '137'

/** `minted`: any account can mint; `wrapped`: WETH9 around the chain's native coin. */
export type TokenKind = 'usdc' | 'minted' | 'wrapped'
export type WorldToken = { symbol: string; name: string; decimals: number; address: Address; kind: TokenKind }

export type WorldChain = {
  id: ChainId
  name: string
  /** The chain's name at DefiLlama. */
  slug: string
  native: { symbol: string; coingecko: string }
  tokens: readonly WorldToken[]
  factory: Address
  router: Address
  /** Amount of one faucet grant, as decimal text; never of the native coin. */
  defaultGrants: readonly { symbol: string; amount: string }[]
}

const token = (symbol: string, name: string, decimals: number, address: Address): WorldToken => ({
  symbol,
  name,
  decimals,
  address,
  kind: 'minted',
})
const usdc = (address: Address): WorldToken => ({ ...token('USDC', 'USD Coin', 6, address), kind: 'usdc' })
const wrapped = (symbol: string, name: string, address: Address): WorldToken => ({
  ...token(symbol, name, 18, address),
  kind: 'wrapped',
})

const ether = { symbol: 'ETH', coingecko: 'ethereum' }
const usdcGrant = { symbol: 'USDC', amount: '10000' }

/** Real chain ids and addresses, so that tables are the same for the world and for public chains. */
export const worldChains: readonly WorldChain[] = [
  {
    id: '1',
    name: 'Ethereum',
    slug: 'ethereum',
    native: ether,
    factory: '0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f',
    router: '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D',
    tokens: [
      usdc('0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'),
      token('USDT', 'Tether USD', 6, '0xdAC17F958D2ee523a2206206994597C13D831ec7'),
      wrapped('WETH', 'Wrapped Ether', '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2'),
      token('WBTC', 'Wrapped BTC', 8, '0x2260FAC5E5542a773Aa44fBCfeDf7C193bc2C599'),
      token('LINK', 'ChainLink Token', 18, '0x514910771AF9Ca656af840dff83E8264EcF986CA'),
      token('UNI', 'Uniswap', 18, '0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984'),
    ],
    defaultGrants: [usdcGrant, { symbol: 'LINK', amount: '50' }, { symbol: 'WBTC', amount: '0.01' }],
  },
  {
    id: '8453',
    name: 'Base',
    slug: 'base',
    native: ether,
    factory: '0x8909Dc15e40173Ff4699343b6eB8132c65e18eC6',
    router: '0x4752ba5DBc23f44D87826276BF6Fd6b1C372aD24',
    tokens: [
      usdc('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'),
      wrapped('WETH', 'Wrapped Ether', '0x4200000000000000000000000000000000000006'),
      token('cbBTC', 'Coinbase Wrapped BTC', 8, '0xcbB7C0000aB88B473b1f5aFd9ef808440eed33Bf'),
      token('DAI', 'Dai Stablecoin', 18, '0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb'),
      token('AERO', 'Aerodrome', 18, '0x940181a94A35A4569E4529A3CDfB74e38FD98631'),
    ],
    defaultGrants: [usdcGrant, { symbol: 'DAI', amount: '100' }, { symbol: 'cbBTC', amount: '0.01' }],
  },
  {
    id: '42161',
    name: 'Arbitrum',
    slug: 'arbitrum',
    native: ether,
    factory: '0xf1D7CC64Fb4452F05c498126312eBE29f30Fbcf9',
    router: '0x4752ba5DBc23f44D87826276BF6Fd6b1C372aD24',
    tokens: [
      usdc('0xaf88d065e77c8cC2239327C5EDb3A432268e5831'),
      wrapped('WETH', 'Wrapped Ether', '0x82aF49447D8a07e3bd95BD0d56f35241523fBab1'),
      token('WBTC', 'Wrapped BTC', 8, '0x2f2a2543B76A4166549F7aaB2e75Bef0aefC5B0f'),
      token('ARB', 'Arbitrum', 18, '0x912CE59144191C1204E64559FE8253a0e49E6548'),
      token('LINK', 'ChainLink Token', 18, '0xf97f4df75117a78c1A5a0DBb814Af92458539FB4'),
    ],
    defaultGrants: [usdcGrant, { symbol: 'ARB', amount: '100' }, { symbol: 'LINK', amount: '50' }],
  },
  {
    id: '137',
    name: 'Polygon',
    slug: 'polygon',
    native: { symbol: 'POL', coingecko: 'polygon-ecosystem-token' },
    factory: '0x9e5A52f57b3038F1B8EeE45F28b3C1967e22799C',
    router: '0xedf6066a2b290C185783862C7F4776A2C8077AD1',
    tokens: [
      usdc('0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359'),
      token('USDC.e', 'USD Coin (PoS)', 6, '0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174'),
      token('WETH', 'Wrapped Ether', 18, '0x7ceB23fD6bC0adD59E62ac25578270cFf1b9f619'),
      wrapped('WPOL', 'Wrapped Polygon Ecosystem Token', '0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270'),
      token('LINK', 'ChainLink Token', 18, '0x53E0bca35eC356BD5ddDFebbD1Fc0fD03FaBad39'),
    ],
    defaultGrants: [usdcGrant, { symbol: 'WPOL', amount: '100' }, { symbol: 'LINK', amount: '50' }],
  },
]

export const executor: Address = '0x000000009B1D0aF20D8C6d0A44e162d11F9b8f00'
export const multicall3: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'
export const faucetContract: Address = '0xFA0ce70000000000000000000000000000000001'
/** LI.FI's contract, at its published address. */
export const lifiDiamond: Address = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE'
/** Fills what is bridged through it: its key derives from a public label. */
export const lifiFiller: Address = '0x0117B8414142cDa49ebBD30505c11772a2304a3a'

/** Relay's routers, each with the contract that takes tokens for it, at their published addresses. */
export const relayRouters = {
  '2.1': {
    router: '0x3eC130B627944cad9b2750300ECB0A695DA522B6',
    approvalProxy: '0x58cC3e0aA6CD7bf795832A225179ec2d848cE3e7',
  },
  '3': {
    router: '0xb92fe925DC43a0ECdE6c8b1a2709c170Ec4fFf4f',
    approvalProxy: '0xCcC88a9d1B4ED6b0EABA998850414b24f1c315bE',
  },
  '3.2': {
    router: '0x0729E2a4716d9f7dD17858d5d504426D228697f7',
    approvalProxy: '0x5567954cD026CEbFE486062cb75848e0f1c12E58',
  },
} as const satisfies Record<string, { router: Address; approvalProxy: Address }>

/** Takes payments for credits, on every chain. */
export const till: Address = '0x7111000000000000000000000000000000000001'
export const vault: Address = '0xea12000000000000000000000000000000008453'
export const vaultChain: ChainId = '8453'
/** Chain of the venue's bridge. */
export const venueChain: ChainId = '42161'
/** Chain of the prediction market. */
export const predictionChain: ChainId = '137'

/** Where deposits for the solver go, as at Relay. */
export const depository: Address = '0x4cD00E387622C35bDDB9b4c962C136462338BC31'
/** The solver's account: its key derives from a public label. */
export const solver: Address = '0x647Ec5BC66514d9B3100c33bA2464be68972B410'

/** The first account of anvil's default mnemonic deploys the world; accounts 1 to 8 are free for users. */
export const deployer: Address = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
/** The tenth account serves the running world: faucet and vault. */
export const operator: Address = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'

/** The most gas of one transaction (EIP-7825). */
export const transactionGasMax = 2 ** 24

/** Accounts that pay for gas, as an operator's do: the node does not hold their keys, and no mnemonic derives them. */
export const sponsors: readonly Address[] = [
  '0x53166976510F587784878e280579a8a46C2DaCF7',
  '0x677E8027f65CCd230D6d0764C3971d202a4ECa03',
  '0x8A5375B7017387365C15bA174D8fc414E36175C7',
  '0x96Ac700c30805E83C24bFf949E86B30B7ed8a2fd',
]

/** Holds what nobody may take back. */
export const burnAddress: Address = '0x000000000000000000000000000000000000dEaD'

export const chainOf = (id: string): WorldChain | undefined => worldChains.find((chain) => chain.id === id)

export const usdcOf = (chain: WorldChain): WorldToken => {
  const found = chain.tokens.find(({ kind }) => kind === 'usdc')
  if (!found) throw new Error(`${chain.name} has no USDC in the table.`)
  return found
}

export const contractsOf = (chain: WorldChain): Record<string, Address> => ({
  executor,
  multicall3,
  faucet: faucetContract,
  factory: chain.factory,
  router: chain.router,
  usdc: usdcOf(chain).address,
  depository,
  till,
  lifi: lifiDiamond,
  ...(chain.id === vaultChain ? { vault } : {}),
})
