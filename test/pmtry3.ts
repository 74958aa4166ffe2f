import { newAgent, http } from './harness/gateway.ts'
const url = process.argv[2]!, world = process.argv[3]!
const venue = async (m: string, p: string, b?: object) => (await http<any>(`${world}/venues/polymarket${p}`, { method: m, ...(b && { body: b }) })).body
const pause = (ms: number) => new Promise((r) => setTimeout(r, ms))
const one = async (n: number, slug: string) => {
  const agent = await newAgent(url)
  const call = async (route: string, body?: unknown) => {
    const [method, path] = route.split(' ')
    return http<any>(url + path, { method: method!, ...(body !== undefined && { body }), headers: { authorization: `Bearer ${agent.token}` } })
  }
  const run = async (route: string, body: object) => {
    const r = await call(`POST ${route}`, body)
    if (r.status !== 200) { console.log(n, route, r.status, r.body.code, r.body.detail); return r.body }
    for (;;) {
      const t = (await call(`GET /v1/tasks/${r.body.task_id}`)).body
      if (!['pending', 'running'].includes(t.status)) { console.log(n, route, t.status, t.outcome, t.error?.code ?? '', t.error?.message ?? '', t.result?.order_status ?? '', t.result?.settled_shares ?? ''); return t }
      await pause(300)
    }
  }
  for (;;) { const { body } = await call('GET /v1/tasks?kind=faucet_grant'); if (body.items[0]?.status === 'completed') break; await pause(500) }
  await call('POST /predmkt/disclaimer/acknowledge', {})
  await run('/predmkt/setup', {})
  const st0 = (await call('GET /predmkt/setup/status')).body
  await run('/predmkt/fund-safe', { amount_usd: '50' })
  await venue('POST', '/credit', { wallet: st0.safe_address, amount: '7', token: 'usdce' })
  await run('/predmkt/fund-safe', { amount_usd: '7', source_token_address: 'USDC.e', wrap_only: true, source_wallet: 'deposit_wallet' })
  const m = (await call('GET /predmkt/markets?limit=50')).body.markets.find((x: any) => x.slug === slug)
  const o = m.outcomes[0].outcome_id
  let spent = 0
  for (let i = 0; i < 4; i++) {
    const t = await run('/predmkt/order', { outcome_id: o, side: 'BUY', order_type: 'FAK', amount_usd: '5' })
    spent += Number(t.result?.total_usd ?? 0)
  }
  const p = (await call('GET /predmkt/positions')).body.positions?.find((x: any) => x.outcome_id === o)
  if (p) { const t = await run('/predmkt/order', { outcome_id: o, side: 'SELL', order_type: 'FAK', amount_shares: String(Math.floor(Number(p.size))) }); spent -= Number(t.result?.total_usd ?? 0) }
  const st = (await call('GET /predmkt/setup/status')).body
  console.log(n, 'cash', st.spendable_cash_usd, 'expected', 57 - spent, 'locked', st.locked_usd)
  await run('/predmkt/withdraw', { amount_usdc: st.spendable_cash_usd })
}
await venue('POST', '/realism', { preset: process.argv[4] ?? 'realistic' })
await Promise.all([one(1, 'fed-cuts-rates-in-december'), one(2, 'gamma-is-the-largest-company'), one(3, 'bitcoin-reaches-250k-this-year')])
process.exit(0)
