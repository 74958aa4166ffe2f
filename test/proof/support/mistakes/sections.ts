import { addresses } from './addresses.ts'
import { credentials } from './credentials.ts'
import { fields } from './fields.ts'
import { json } from './json.ts'
import { keyPairs } from './key-pairs.ts'
import { keys } from './keys.ts'
import { lists } from './lists.ts'
import type { MistakeSection } from './mistake.ts'
import { objects } from './objects.ts'
import { perpetuals } from './perpetuals.ts'
import { policies } from './policies.ts'
import { predictions } from './predictions.ts'
import { spot } from './spot.ts'
import { strategies } from './strategies.ts'
import { subscriptions } from './subscriptions.ts'
import { webhooks } from './webhooks.ts'

/** In the order of the table. */
export const mistakeSections: readonly MistakeSection[] = [
  addresses,
  credentials,
  keyPairs,
  json,
  fields,
  objects,
  perpetuals,
  spot,
  predictions,
  strategies,
  keys,
  lists,
  policies,
  webhooks,
  subscriptions,
]
