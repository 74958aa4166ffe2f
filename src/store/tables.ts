import type { AdminTables } from './tables/admin.ts'
import type { ImageTables } from './tables/backend-keys.ts'
import type { ChatTables } from './tables/chat.ts'
import type { OrderTables } from './tables/cost-basis.ts'
import type { CreditTables } from './tables/credits.ts'
import type { DurableTables } from './tables/durable.ts'
import type { EarnTables } from './tables/earn.ts'
import type { FileTables } from './tables/files.ts'
import type { IdentityTables } from './tables/identity.ts'
import type { OAuthTables } from './tables/oauth.ts'
import type { PredictionTables } from './tables/predmkt.ts'
import type { StrategyTables } from './tables/strategies.ts'
import type { SubscriptionTables } from './tables/subscriptions.ts'
import type { SwapTables } from './tables/swap.ts'
import type { VenueTables } from './tables/venue.ts'
import type { WebhookTables } from './tables/webhooks.ts'

export type Tables = AdminTables &
  ChatTables &
  CreditTables &
  DurableTables &
  IdentityTables &
  FileTables &
  ImageTables &
  EarnTables &
  VenueTables &
  PredictionTables &
  SwapTables &
  StrategyTables &
  SubscriptionTables &
  OrderTables &
  OAuthTables &
  WebhookTables
