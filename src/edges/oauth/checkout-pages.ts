import type { WebDoor, WebRoute } from '#invoke/web-route.ts'
import { page, pageHeaders } from './pages.ts'

/** Where a payer ends who comes back from the payment provider. The pages say nothing about any payment. */

const pages = {
  '/checkout/paid': page(
    'Thank you',
    '<h1>Thank you</h1><p class="soft">Your plan is active as soon as the payment provider confirms the payment, which takes a moment. You can close this page.</p>',
  ),
  '/checkout/cancelled': page(
    'Nothing was paid',
    '<h1>Nothing was paid</h1><p class="soft">The page on which you were stays open for a while. You can close this one.</p>',
  ),
}

const routeOf = ([path, html]: readonly [string, string]): WebRoute => ({
  path,
  methods: ['GET'],
  bodyBytesMax: 1_024,
  admit: async () => undefined,
  answer: async () => new Response(html, { headers: pageHeaders() }),
  async refuseBody(fault) {
    throw fault
  },
})

export const createCheckoutPages = (): WebDoor => ({
  routes: Object.entries(pages).map(routeOf),
  documents: [],
})
