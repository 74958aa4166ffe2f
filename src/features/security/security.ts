import { Fault, type Issue } from '#kernel/contract/fault.ts'
import { type InputOf, implement } from '#kernel/contract/operation.ts'
import { findChain, unservedChain } from '#kernel/contract/token-ref.ts'
import type { SecurityVerdicts, TokenRef, TokenVerdict } from '#kernel/money/token-security.ts'
import { contract } from './contract.ts'
import { type IsSolanaAddress, isAddressOn, keyOf } from './token-address.ts'
import { type CheckerDeps, createChecker } from './token-checker.ts'

type SecurityDeps = CheckerDeps & { isSolanaAddress: IsSolanaAddress }
type CheckInput = InputOf<typeof contract.entries.check>

const freshMs = 10_000
/** The maximum age of a verdict that a trade relies on. */
const tradeFreshMs = 1_000

export function createSecurity(deps: SecurityDeps) {
  const checker = createChecker(deps)
  const chains = deps.readers.map(({ chain }) => chain.row)

  /** Returns each token once, in the order of the request. */
  const distinct = ({ tokens }: CheckInput): TokenRef[] => {
    const byKey = new Map<string, TokenRef>()
    const issues: Issue[] = []
    for (const [index, { chain_id: ref, token_address: address }] of tokens.entries()) {
      const chain = findChain(chains, ref)
      const chainId = chain?.id ?? String(ref)
      if (!chain && !isChainId.test(chainId))
        issues.push(...unservedChain(chains, `tokens.${index}.chain_id`).issues)
      if (chain && !isAddressOn(chain, address, deps.isSolanaAddress))
        issues.push(addressIssue(index, chain.family))
      const key = chain ? keyOf(chain, address) : `${chainId}:${address}`
      if (!byKey.has(key)) byKey.set(key, { chainId, address })
    }
    if (issues.length > 0) throw new Fault('validation', issues[0]!.msg, { issues })
    return [...byKey.values()]
  }

  const verdicts: SecurityVerdicts = {
    // A trade waits in the queue under a key of its own, so that a check of many tokens by the same user does not delay
    // it.
    verdictOf: (tokens, { userId }) =>
      checker.check(tokens, { owner: `trade:${userId}`, maxAgeMs: tradeFreshMs, isTrade: true }),
  }

  return {
    verdicts,
    operations: implement(contract, {
      async check(input, { userId }) {
        const found = await checker.check(distinct(input), { owner: userId, maxAgeMs: freshMs })
        const results = found.map(viewOf)
        return { all_passed: results.every(({ allowed }) => allowed), results }
      },
    }),
  }
}

/** An unknown chain id is no mistake of the request; its answer is `unsupported_chain`. */
const isChainId = /^[1-9][0-9]*$/

const addressIssue = (index: number, family: 'evm' | 'solana'): Issue => ({
  path: ['tokens', index, 'token_address'],
  type: 'invalid_address',
  msg:
    family === 'evm'
      ? 'Input should be an address of an EVM chain: 0x and 40 hexadecimal digits'
      : 'Input should be an address of Solana: 32 bytes in base58',
})

const fraction = (bps: number | null): number | null => (bps === null ? null : bps / 10_000)

const viewOf = (verdict: TokenVerdict) => ({
  chain_id: verdict.chainId,
  token_address: verdict.address,
  status: verdict.status,
  verdict: verdict.verdict,
  allowed: verdict.allowed,
  provider: verdict.sources
    .filter((each) => each.verdict !== 'unknown')
    .map(({ source }) => source)
    .join(','),
  risk_level: verdict.riskLevel,
  reasons: verdict.reasons.map(({ code, level, message, source }) => ({ code, level, message, source })),
  buy_tax: fraction(verdict.buyTaxBps),
  sell_tax: fraction(verdict.sellTaxBps),
  transfer_tax: fraction(verdict.transferTaxBps),
  is_honeypot: verdict.isHoneypot,
  score: verdict.score,
  simulated_at_block: verdict.simulatedAtBlock?.toString() ?? null,
  checked_at: verdict.checkedAt.toISOString(),
})
