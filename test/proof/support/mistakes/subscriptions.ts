import type { MistakeSection } from './mistake.ts'

const intent = '7f0c1d9e-3b52-4c8a-9f41-2f6f5a1d8e77'

export const subscriptions: MistakeSection = {
  title: 'Plans',
  mistakes: [
    {
      mistake: 'The name of a plan instead of its price',
      send: 'POST /v1/subscriptions/checkout',
      body: { price_id: 'plus', client_intent_id: intent },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.price_id',
        says: 'Input should be price_local_plus_month, price_local_pro_month, price_local_pro_year: `subscriptions_plans` shows what each is',
      },
    },
    {
      mistake: 'No intent, by which a repetition is known',
      send: 'POST /v1/subscriptions/checkout',
      body: { price_id: 'price_local_plus_month' },
      answer: {
        status: 422,
        code: 'validation',
        at: 'body.client_intent_id',
        says: 'Field required: add `client_intent_id`',
      },
    },
    {
      mistake: 'The end of a plan that nobody has paid for',
      send: 'POST /v1/subscriptions/cancel',
      answer: { status: 409, code: 'conflict', says: 'There is no plan to change' },
    },
  ],
}
