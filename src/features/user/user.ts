import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { Credits } from '#features/credits/credits.ts'
import type { PolicySummary } from '#features/policy/policy.ts'
import type { PlanState } from '#features/subscriptions/plan-views.ts'
import { scopes } from '#kernel/contract/caller.ts'
import { notFound } from '#kernel/contract/fault.ts'
import { implement, type Operation } from '#kernel/contract/operation.ts'
import { builder, fetchOne, type Queryable } from '#store/query.ts'
import { contract } from './contract.ts'

type UserDeps = {
  db: Queryable
  walletsOf: (db: Queryable, userId: string) => Promise<Wallet[]>
  credits: Pick<Credits, 'available'>
  planOf: (userId: string) => Promise<PlanState>
  policySummary: (userId: string) => Promise<PolicySummary>
}

const chainTypes = { evm: 'evm', svm: 'solana' } as const

export const createUser = ({ db, walletsOf, credits, planOf, policySummary }: UserDeps): Operation[] =>
  implement(contract, {
    async show(_input, caller) {
      const { userId } = caller
      const [row, wallets, available, plan, summary] = await Promise.all([
        fetchOne(db, builder.selectFrom('app_user').selectAll().where('id', '=', userId)),
        walletsOf(db, userId),
        credits.available(userId),
        planOf(userId),
        policySummary(userId),
      ])
      if (!row) throw notFound('user')
      return {
        user_id: row.id,
        agent_id: row.agent_id,
        auth_scheme: row.auth_scheme,
        email: row.email,
        name: row.name,
        wallets: wallets.map(({ id, address, kind }) => ({
          wallet_id: id,
          address,
          chain_type: chainTypes[kind],
        })),
        credits_available: available,
        credits_available_decimal: String(available),
        plan: plan.plan,
        plan_status: plan.status,
        plan_until: plan.until?.toISOString() ?? null,
        scopes: scopes.filter((scope) => caller.scopes.has(scope)),
        policy_summary: summary,
        disclaimer_acknowledged_at: row.disclaimer_acknowledged_at?.toISOString() ?? null,
        created_at: row.created_at.toISOString(),
      }
    },
  })
