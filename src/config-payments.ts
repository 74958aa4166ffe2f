/** The settings of payments: those of the local world, and what must not be mixed with real money. */

/** The local world's payment provider knows this key and this secret, and sells these plans. */
export const worldPaymentKey = 'sk_test_portico_local_world'
export const worldPaymentSecret = 'whsec_portico_local_world'
export const worldPlans =
  'price_local_plus_month:plus:800,price_local_pro_month:pro:4000,price_local_pro_year:pro:48000'

export const worldTill = '0x7111000000000000000000000000000000000001'
export const worldSolanaTill = 'DZchFr2n6SCURi4pT6zVZ2w7pi4xLtrx6nj5PdhdFYLN'
export const worldTills = [
  ['1', worldTill, '0.05'],
  ['8453', worldTill, '0.05'],
  ['42161', worldTill, '0.05'],
  ['137', worldTill, '2000'],
  ['7565164', worldSolanaTill, '1'],
]
  .map((each) => each.join(':'))
  .join(',')

type PaymentSettings = {
  readonly ENVIRONMENT: 'local' | 'staging' | 'production'
  readonly STRIPE_URL: string | undefined
  readonly STRIPE_API_KEY: string | undefined
  readonly STRIPE_WEBHOOK_SECRETS: readonly string[]
  readonly STRIPE_PLANS: readonly object[]
}

/** Plans are sold whole or not at all: without its secret no event is believed, and a test key takes no money. */
export function problemsOfPayments(config: PaymentSettings): string[] {
  const { STRIPE_URL: url, STRIPE_API_KEY: key, ENVIRONMENT: environment } = config
  if (url === undefined) return []
  const problems: string[] = []
  if (key === undefined) problems.push('STRIPE_API_KEY: STRIPE_URL requires it')
  if (config.STRIPE_WEBHOOK_SECRETS.length === 0)
    problems.push('STRIPE_WEBHOOK_SECRETS: STRIPE_URL requires it; set the secret of the endpoint')
  if (config.STRIPE_PLANS.length === 0) problems.push('STRIPE_PLANS: STRIPE_URL requires it')
  if (environment !== 'local' && key === worldPaymentKey)
    problems.push('STRIPE_API_KEY: the default key is public; set a key of your own')
  if (environment !== 'local' && config.STRIPE_WEBHOOK_SECRETS.includes(worldPaymentSecret))
    problems.push('STRIPE_WEBHOOK_SECRETS: the default secret is public; set one of your own')
  if (environment === 'production' && !/^(?:sk|rk)_live_/.test(key ?? ''))
    problems.push('STRIPE_API_KEY: production requires a live key')
  if (environment === 'production' && /^http:/i.test(url))
    problems.push('STRIPE_URL: production requires https, because the key is sent to it')
  if (environment !== 'production' && /^(?:sk|rk)_live_/.test(key ?? ''))
    problems.push('STRIPE_API_KEY: a live key takes real money and is for production only')
  return problems
}
