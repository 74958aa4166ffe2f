import type { Price, Product } from './objects.ts'

/** The plans that the provider's account sells from its first start on. */

const created = 1_767_225_600

const product = (id: string, name: string): Product => ({
  id,
  object: 'product',
  created,
  livemode: false,
  active: true,
  name,
  metadata: {},
})
const price = (id: string, soldAs: string, cents: number, interval: 'month' | 'year'): Price => ({
  id,
  object: 'price',
  created,
  livemode: false,
  active: true,
  currency: 'usd',
  product: soldAs,
  type: 'recurring',
  unit_amount: cents,
  recurring: { interval, interval_count: 1, usage_type: 'licensed' },
  metadata: {},
})

export const products = [
  product('prod_local_plus', 'Plus'),
  product('prod_local_pro', 'Pro'),
  product('prod_local_team', 'Team'),
  product('prod_local_old', 'Old'),
]
export const prices = [
  price('price_local_plus_month', 'prod_local_plus', 1_000, 'month'),
  price('price_local_pro_month', 'prod_local_pro', 4_000, 'month'),
  price('price_local_pro_year', 'prod_local_pro', 40_000, 'year'),
  // Prices of further plans; a gateway sells those that its settings name.
  price('price_local_team_month', 'prod_local_team', 4_000, 'month'),
  price('price_local_old_month', 'prod_local_old', 500, 'month'),
]

/** The account's key and the secret that signs its events; anybody may know both. */
export const localKey = 'sk_test_portico_local_world'
export const localSecret = 'whsec_portico_local_world'
export const apiVersion = '2026-10-28.endive'
