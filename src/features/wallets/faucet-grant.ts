import type { Wallet } from '#engines/custody/wallet-store.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import type { Admission, Step, TaskKind } from '#kernel/task/task.ts'
import type { Faucet } from '#upstreams/faucet/faucet.ts'

/** A configured faucet funds new wallets. It pays once per id, so retries are safe. */

type FaucetGrantDeps = { faucet: Faucet; changed: (userId: string, chainId: string) => void }
type Target = { chain_id: string; address: string }

const dayMs = 24 * 3_600_000

export const faucetGrantKind = 'faucet_grant'

export function faucetGrantAdmission(
  wallets: readonly Wallet[],
  chainRows: readonly Pick<Chain, 'id' | 'family'>[],
): Admission {
  const targets: Target[] = wallets.flatMap(({ kind, address }) =>
    chainRows
      .filter(({ family }) => family === (kind === 'evm' ? 'evm' : 'solana'))
      .map(({ id }) => ({ chain_id: id, address })),
  )
  return { first: 'fund', data: { targets }, deadlineMs: dayMs }
}

export function createFaucetGrant({ faucet, changed }: FaucetGrantDeps): TaskKind {
  const fund: Step = async (task) => {
    const targets = (task.data.targets ?? []) as Target[]
    const tries = await Promise.allSettled(
      targets.map(async ({ chain_id, address }) => {
        const id = `faucet_grant:${address}:${chain_id}`
        const credited = await faucet.fund({ chainId: chain_id, address, id })
        changed(task.userId, chain_id)
        const credits = credited.map(({ token, amountUnits }) => ({
          chain_id,
          token_address: token,
          amount: String(amountUnits),
        }))
        return { chain_id, credits }
      }),
    )
    const refused: string[] = []
    for (const each of tries) {
      if (each.status === 'fulfilled') continue
      // The task is retried, and the faucet does not pay again for ids that succeeded.
      if (!(each.reason instanceof Fault) || each.reason.retryable) throw each.reason
      refused.push(each.reason.message)
    }
    const paid = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const funded = paid.map(({ chain_id }) => chain_id)
    if (funded.length > 0)
      return {
        end: 'completed',
        outcome: refused.length > 0 ? 'partial' : 'executed',
        result: { funded, refused },
        // A node that lags behind may lack these payments, so their transactions are kept in the task.
        data: { credits: paid.flatMap(({ credits }) => credits) },
      }
    return notExecuted({
      code: 'upstream_rejected',
      message: refused[0] ?? 'No configured chain matches the wallets',
      upstream: 'faucet',
    })
  }
  return {
    kind: faucetGrantKind,
    version: 1,
    priority: 2,
    steps: { fund },
    retry: { attemptsMax: 12, firstMs: 250, maxMs: 30_000 },
  }
}
