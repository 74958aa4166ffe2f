/** What the swaps of a world may move and never make: every token and coin over all who take part. */
import assert from 'node:assert/strict'
import type pg from 'pg'
import { toEventSelector } from 'viem'
import { lifiDiamond, lifiFiller, sponsors } from '#world/evm/chains.ts'
import { fromBase58 } from '#world/solana/base58.ts'
import { depositoryProgram, depositoryVault } from '#world/solana/depository-accounts.ts'
import { worldKeyPair } from '#world/solana/keys.ts'
import type { Person } from '../journeys/users.ts'
import { solana, type World } from '../journeys/world.ts'

export const evmIds = ['1', '8453', '42161', '137'] as const
export type EvmId = (typeof evmIds)[number]

export const lamport = '11111111111111111111111111111111'
const solver = {
  evm: '0x647Ec5BC66514d9B3100c33bA2464be68972B410',
  solana: worldKeyPair('solver').address,
}
const solanaSponsors = [1, 2].map((index) => worldKeyPair(`solana sponsor ${index}`).address)
const depository = '0x4cD00E387622C35bDDB9b4c962C136462338BC31'
const tokenPrograms = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
]
/** WETH9 around the native coin of a chain: what it holds is what it has issued. */
const wrappedSymbols: Record<EvmId, string> = { '1': 'WETH', '8453': 'WETH', '42161': 'WETH', '137': 'WPOL' }

type Sums = Map<string, bigint>
const adder = (sums: Sums) => (key: string, units: bigint) => sums.set(key, (sums.get(key) ?? 0n) + units)
const word = (address: string) => address.slice(2).toLowerCase().padStart(64, '0')
const hex = (value: number) => `0x${value.toString(16)}`

type ChainCursor = { block: number; hash: string }
/** Units by chain and token over all who take part, and where the chains stood. */
export type Books = { sums: Sums; cursors: Record<EvmId, ChainCursor>; signatures: ReadonlySet<string> }

const evmUrl = (world: World, chain: EvmId) => world.manifest.urls.evm[chain]

async function poolsOf(world: World, chain: EvmId): Promise<string[]> {
  const { usdc, factory } = world.manifest.contracts[chain] as unknown as Record<'usdc' | 'factory', string>
  const tokens = world.manifest.tokens[chain]!.map(({ address }) => address!)
  const others = tokens.filter((token) => token.toLowerCase() !== usdc.toLowerCase())
  return Promise.all(
    others.map(async (token) => {
      const call = { to: factory, data: `0xe6a43905${word(usdc)}${word(token)}` }
      const found = await world.rpc('eth_call', [call, 'latest'], evmUrl(world, chain))
      return `0x${String(found).slice(-40)}`
    }),
  )
}

const wrappedOf = (world: World, chain: EvmId): string => world.tokenOn(chain, wrappedSymbols[chain])

/** All that can hold a coin or token that swaps move on a chain. */
async function holdersOf(world: World, people: readonly Person[], chain: EvmId): Promise<string[]> {
  const { router } = world.manifest.contracts[chain] as unknown as { router: string }
  const all = [
    ...people.map(({ evm }) => evm),
    ...sponsors,
    ...(await poolsOf(world, chain)),
    solver.evm,
    depository,
    lifiFiller,
    lifiDiamond,
    router,
    wrappedOf(world, chain),
  ]
  return [...new Set(all.map((each) => each.toLowerCase()))]
}

async function evmSums(
  world: World,
  people: readonly Person[],
  chain: EvmId,
  sums: Sums,
): Promise<ChainCursor> {
  const url = evmUrl(world, chain)
  const { number, hash } = (await world.rpc('eth_getBlockByNumber', ['latest', false], url)) as {
    number: string
    hash: string
  }
  const add = adder(sums)
  const holders = await holdersOf(world, people, chain)
  const wrapped = wrappedOf(world, chain).toLowerCase()
  const nativeOf = async (holder: string) =>
    BigInt((await world.rpc('eth_getBalance', [holder, number], url)) as string)
  await Promise.all(
    holders.map(async (holder) => {
      add(`${chain} native`, await nativeOf(holder))
      for (const { symbol, address } of world.manifest.tokens[chain]!) {
        const call = { to: address, data: `0x70a08231${word(holder)}` }
        add(`${chain} ${symbol}`, BigInt((await world.rpc('eth_call', [call, number], url)) as string))
      }
    }),
  )
  // Wrapping makes a unit for each coin that the contract takes in.
  add(`${chain} ${wrappedSymbols[chain]}`, -(await nativeOf(wrapped)))
  return { block: Number(number), hash }
}

/** Native coins that the transactions after a block have burned or paid to the proposer. */
async function evmFees(
  world: World,
  people: readonly Person[],
  chain: EvmId,
  { from, to }: { from: number; to: number },
): Promise<bigint> {
  const holders = new Set(await holdersOf(world, people, chain))
  let wei = 0n
  for (let block = from + 1; block <= to; block += 1) {
    const receipts = (await world.rpc('eth_getBlockReceipts', [hex(block)], evmUrl(world, chain))) as {
      from: string
      gasUsed: string
      effectiveGasPrice: string
    }[]
    assert.ok(receipts, `block ${block} of chain ${chain} is pruned: its fees are unknown`)
    for (const { from: payer, gasUsed, effectiveGasPrice } of receipts)
      if (holders.has(payer.toLowerCase())) wei += BigInt(gasUsed) * BigInt(effectiveGasPrice)
  }
  return wei
}

type TokenAccount = {
  account: {
    lamports: number
    data: { parsed: { info: { mint: string; tokenAmount: { amount: string } } } }
  }
}
const confirmed = { commitment: 'confirmed' }
const solanaRpc = <T>(world: World, method: string, params: unknown[]) =>
  world.rpc(method, params, world.manifest.urls.solana) as Promise<T>

const solanaOwners = (people: readonly Person[]) => [
  ...people.map((person) => person.solana),
  solver.solana,
  depositoryVault,
  ...solanaSponsors,
]

/** Lamports include those of the token accounts, so that rent is moved and not spent. */
async function solanaSums(world: World, people: readonly Person[], sums: Sums): Promise<void> {
  const add = adder(sums)
  for (const owner of solanaOwners(people)) {
    const { value } = await solanaRpc<{ value: number }>(world, 'getBalance', [owner, confirmed])
    add(`${solana} native`, BigInt(value))
    for (const programId of tokenPrograms) {
      const params = [owner, { programId }, { encoding: 'jsonParsed', ...confirmed }]
      const found = await solanaRpc<{ value: TokenAccount[] }>(world, 'getTokenAccountsByOwner', params)
      for (const { account } of found.value) {
        const { mint, tokenAmount } = account.data.parsed.info
        add(`${solana} native`, BigInt(account.lamports))
        add(`${solana} ${mint}`, BigInt(tokenAmount.amount))
      }
    }
  }
}

const pageMax = 1_000

/** All transactions that name a payer of fees, or the solver. */
async function solanaSignatures(world: World): Promise<Set<string>> {
  const signatures = new Set<string>()
  for (const address of [solver.solana, ...solanaSponsors])
    for (let before: string | undefined, size = pageMax; size === pageMax; ) {
      const config = { limit: pageMax, ...confirmed, ...(before !== undefined && { before }) }
      const page = await solanaRpc<{ signature: string }[]>(world, 'getSignaturesForAddress', [
        address,
        config,
      ])
      for (const { signature } of page) signatures.add(signature)
      before = page.at(-1)?.signature
      size = page.length
    }
  return signatures
}

type Instruction = { program?: string; parsed?: unknown; programId: string; data?: string }
type SolanaTransaction = {
  meta: { err: unknown; fee: number; preBalances: number[]; postBalances: number[] }
  transaction: { message: { accountKeys: { pubkey: string }[]; instructions: Instruction[] } }
}

async function solanaTransactions(world: World, since: ReadonlySet<string>): Promise<SolanaTransaction[]> {
  const config = { encoding: 'jsonParsed', maxSupportedTransactionVersion: 0, ...confirmed }
  const added = [...(await solanaSignatures(world))].filter((signature) => !since.has(signature))
  const found: SolanaTransaction[] = []
  for (const signature of added)
    found.push(await solanaRpc<SolanaTransaction>(world, 'getTransaction', [signature, config]))
  return found
}

export async function readBooks(world: World, people: readonly Person[]): Promise<Books> {
  const sums: Sums = new Map()
  const cursors = {} as Record<EvmId, ChainCursor>
  const signatures = await solanaSignatures(world)
  await Promise.all([
    ...evmIds.map(async (chain) => {
      cursors[chain] = await evmSums(world, people, chain, sums)
    }),
    solanaSums(world, people, sums),
  ])
  return { sums, cursors, signatures }
}

/** Every sum is what it was, less the fees that the chains took; returns how many sums were compared. */
export async function assertConserved(
  world: World,
  people: readonly Person[],
  before: Books,
): Promise<{ sums: number; feesWei: bigint; feesLamports: bigint }> {
  const after = await readBooks(world, people)
  let feesWei = 0n
  for (const chain of evmIds) {
    const { block: from, hash } = before.cursors[chain]
    const known = (await world.rpc('eth_getBlockByNumber', [hex(from), false], evmUrl(world, chain))) as {
      hash: string
    }
    assert.equal(known.hash, hash, `chain ${chain} has another past`)
    const wei = await evmFees(world, people, chain, { from, to: after.cursors[chain].block })
    feesWei += wei
    adder(after.sums)(`${chain} native`, wei)
  }
  const payers = new Set(solanaOwners(people))
  let feesLamports = 0n
  for (const { meta, transaction } of await solanaTransactions(world, before.signatures)) {
    if (payers.has(transaction.message.accountKeys[0]!.pubkey)) feesLamports += BigInt(meta.fee)
    const sumOf = (balances: number[]) => balances.reduce((sum, each) => sum + BigInt(each), 0n)
    assert.equal(sumOf(meta.preBalances) - sumOf(meta.postBalances), BigInt(meta.fee), 'lamports were made')
  }
  adder(after.sums)(`${solana} native`, feesLamports)
  const changed = [...after.sums].flatMap(([key, units]) => {
    const was = before.sums.get(key) ?? 0n
    return units === was ? [] : [`${key}: ${was} became ${units}, ${units - was} more`]
  })
  assert.deepEqual(changed, [], 'value is conserved')
  return { sums: after.sums.size, feesWei, feesLamports }
}

type Filter = { address: string; topics: string[]; idAt: (data: string) => string }
const filters: Filter[] = [
  {
    address: depository,
    topics: [
      toEventSelector('RelayNativeDeposit(address,uint256,bytes32)'),
      toEventSelector('RelayErc20Deposit(address,address,uint256,bytes32)'),
    ],
    idAt: (data) => `0x${data.slice(-64)}`,
  },
  {
    address: lifiDiamond,
    topics: [
      toEventSelector(
        'LiFiTransferStarted((bytes32,string,string,address,address,address,uint256,uint256,bool,bool))',
      ),
    ],
    // The only argument is a record with the id in front.
    idAt: (data) => `0x${data.slice(2 + 64, 2 + 128)}`,
  },
]

type Deposits = { evm: string[]; solana: string[] }

/** The id of a deposit on Solana: the last argument of the program, or the memo behind a transfer. */
function idOf({ program, programId, parsed, data = '' }: Instruction): string[] {
  if (programId === depositoryProgram)
    return [`0x${Buffer.from(fromBase58(data)!.subarray(16)).toString('hex')}`]
  const memo = program === 'spl-memo' ? String(parsed).trim().toLowerCase() : ''
  return /^0x[0-9a-f]{64}$/.test(memo) ? [memo] : []
}

/** The ids of all deposits since the books were read, in the order of the chains; one that came twice is listed twice. */
async function depositsSince(world: World, { cursors, signatures }: Books): Promise<Deposits> {
  const evm: string[] = []
  for (const chain of evmIds)
    for (const { address, idAt, topics } of filters) {
      const range = { fromBlock: hex(cursors[chain].block + 1), toBlock: 'latest' }
      const filter = { address, ...range, topics: [topics] }
      const logs = (await world.rpc('eth_getLogs', [filter], evmUrl(world, chain))) as { data: string }[]
      evm.push(...logs.map(({ data }) => idAt(data).toLowerCase()))
    }
  const ids = (await solanaTransactions(world, signatures))
    .filter(({ meta }) => meta.err === null)
    .flatMap(({ transaction }) => transaction.message.instructions)
    .flatMap(idOf)
  return { evm, solana: ids }
}

/** No id has two deposits, each is of a task, and each task that deposited has one. */
export async function assertDepositsOnce(world: World, admin: pg.Pool, before: Books): Promise<Deposits> {
  const { rows } = await admin.query<{ id: string; has_deposit: boolean }>(
    `select lower(coalesce(data ->> 'deposit_id', data ->> 'provider_request_id')) as id, data ? 'deposit_tx' as has_deposit
     from task where kind = 'swap' and data ->> 'settled_by' = 'status'`,
  )
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length, 'two tasks share an id')
  const deposits = await depositsSince(world, before)
  const seen = [...deposits.evm, ...deposits.solana].toSorted()
  const expected = rows.flatMap(({ id, has_deposit }) => (has_deposit ? [id] : [])).toSorted()
  assert.deepEqual(seen, expected)
  return deposits
}
