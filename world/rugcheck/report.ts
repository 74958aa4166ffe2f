import type { Answer } from '#world/answer-dial.ts'

/** `GET /v1/tokens/{mint}/report` and `/report/summary` of RugCheck, from the mint and its holders. */

type Ask = (method: string, params: readonly unknown[]) => Promise<unknown>
type Extension = { extension: string; state?: Record<string, unknown> }
type MintInfo = {
  mintAuthority: string | null
  freezeAuthority: string | null
  supply: string
  decimals: number
  extensions?: Extension[]
}
type Risk = { name: string; value: string; description: string; score: number; level: 'warn' | 'danger' }

const error = (status: number, text: string): Answer => ({ status, body: { error: text } })
const danger = (name: string, description: string, score: number): Risk => ({
  name,
  value: '',
  description,
  score,
  level: 'danger',
})

const feeOf = (extensions: readonly Extension[]) => {
  const state = extensions.find(({ extension }) => extension === 'transferFeeConfig')?.state
  const newer = state?.newerTransferFee as { transferFeeBasisPoints: number; maximumFee: unknown } | undefined
  return {
    pct: (newer?.transferFeeBasisPoints ?? 0) / 100,
    maxAmount: Number(newer?.maximumFee ?? 0),
    authority: (state?.transferFeeConfigAuthority as string | undefined) ?? '',
  }
}

const extensionRisks: Readonly<Record<string, Risk>> = {
  permanentDelegate: danger('Permanent delegate', 'A delegate can move the tokens of any holder', 5_000),
  transferHook: danger('Transfer hook', 'A program runs with each transfer', 5_000),
  nonTransferable: danger('Non-transferable', 'The token cannot be transferred', 10_000),
  pausableConfig: danger('Pausable', 'Transfers can be paused', 3_000),
  defaultAccountState: danger('Default account state', 'New accounts are frozen', 5_000),
}

const risksOf = (info: MintInfo, extensions: readonly Extension[], topPercent: number): Risk[] => [
  ...(info.mintAuthority === null
    ? []
    : [danger('Mint Authority still enabled', 'More tokens can be minted by the owner', 2_000)]),
  ...(info.freezeAuthority === null
    ? []
    : [danger('Freeze Authority still enabled', 'Tokens can be frozen by the owner', 2_000)]),
  ...extensions.flatMap(({ extension }) => extensionRisks[extension] ?? []),
  ...(feeOf(extensions).pct > 0 ? [danger('Transfer fee', 'A fee is taken from each transfer', 1_000)] : []),
  ...(topPercent >= 50 ? [danger('Top holder', 'One user holds most of the supply', 5_000)] : []),
]

type Largest = { address: string; amount: string }

const holdersOf = async (ask: Ask, mint: string, supply: string) => {
  const { value } = (await ask('getTokenLargestAccounts', [mint])) as { value: Largest[] }
  const addresses = value.map(({ address }) => address)
  const { value: accounts } = (await ask('getMultipleAccounts', [addresses, { encoding: 'jsonParsed' }])) as {
    value: ({ data: { parsed: { info: { owner: string } } } } | null)[]
  }
  return value.map(({ address, amount }, index) => ({
    address,
    amount: Number(amount),
    pct: supply === '0' ? 0 : (Number(amount) / Number(supply)) * 100,
    owner: accounts[index]?.data.parsed.info.owner ?? '',
    insider: false,
  }))
}

export const respondReport = async (ask: Ask, path: string): Promise<Answer> => {
  const found = /^\/v1\/tokens\/([1-9A-HJ-NP-Za-km-z]{32,44})\/report(\/summary)?$/.exec(path)
  if (!found) return error(400, 'invalid token mint')
  const [, mint = '', isSummary] = found
  const { value } = (await ask('getAccountInfo', [mint, { encoding: 'jsonParsed' }])) as {
    value: { owner: string; data: { parsed?: { type: string; info: MintInfo } } } | null
  }
  const parsed = value?.data.parsed
  if (value === null || parsed?.type !== 'mint') return error(400, 'unable to generate report')
  const { info } = parsed
  const extensions = info.extensions ?? []
  const topHolders = await holdersOf(ask, mint, info.supply)
  const risks = risksOf(info, extensions, topHolders[0]?.pct ?? 0)
  const score = risks.reduce((sum, risk) => sum + risk.score, 1)
  const summary = {
    tokenProgram: value.owner,
    tokenType: '',
    risks,
    score,
    score_normalised: Math.min(100, Math.max(1, Math.round(score / 100))),
  }
  if (isSummary) return { status: 200, body: { ...summary, lpLockedPct: 100 } }
  return {
    status: 200,
    body: {
      mint,
      ...summary,
      mintAuthority: info.mintAuthority,
      freezeAuthority: info.freezeAuthority,
      token: { ...info, isInitialized: true },
      topHolders,
      transferFee: feeOf(extensions),
      rugged: false,
      markets: [],
      lockers: {},
      // The solver trades here instead of pools.
      totalMarketLiquidity: 2_000_000,
      totalLPProviders: 1,
      verification: null,
    },
  }
}
