import { contract as agents } from '#features/agents/contract.ts'
import { contract as approvals } from '#features/approvals/contract.ts'
import { contract as auth } from '#features/auth/contract.ts'
import { contract as chains } from '#features/chains/contract.ts'
import { contract as chat } from '#features/chat/contract.ts'
import { contract as credits, rechargeContract as recharge } from '#features/credits/contract.ts'
import { contract as discovery } from '#features/discovery/contract.ts'
import { contract as earn } from '#features/earn/contract.ts'
import { contract as hooks } from '#features/hooks/contract.ts'
import { contract as limitOrders } from '#features/limit-orders/contract.ts'
import { contract as markets } from '#features/markets/contract.ts'
import { contract as notifications, webhooksContract as webhooks } from '#features/notifications/contract.ts'
import { contract as outstandingOrders } from '#features/outstanding-orders/contract.ts'
import { contract as perp } from '#features/perp/contract.ts'
import { contract as policy, recipientsContract as recipients } from '#features/policy/contract.ts'
import { contract as portfolio } from '#features/portfolio/contract.ts'
import { contract as predmkt } from '#features/predmkt/contract.ts'
import { contract as schedules } from '#features/schedules/contract.ts'
import { contract as security } from '#features/security/contract.ts'
import { contract as spotVenue } from '#features/spot-venue/contract.ts'
import { contract as strategies } from '#features/strategies/contract.ts'
import { contract as subscriptions } from '#features/subscriptions/contract.ts'
import { contract as swap } from '#features/swap/contract.ts'
import { contract as tasks } from '#features/tasks/contract.ts'
import { contract as user } from '#features/user/contract.ts'
import { contract as wallets } from '#features/wallets/contract.ts'

export const contracts = [
  discovery,
  chains,
  auth,
  user,
  agents,
  policy,
  recipients,
  approvals,
  chat,
  schedules,
  wallets,
  portfolio,
  credits,
  recharge,
  subscriptions,
  tasks,
  notifications,
  webhooks,
  security,
  swap,
  limitOrders,
  hooks,
  outstandingOrders,
  earn,
  perp,
  spotVenue,
  predmkt,
  markets,
  strategies,
] as const
