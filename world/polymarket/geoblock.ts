import { ok, type Route, route } from './http.ts'
import type { RealismControl } from './realism.ts'

/** Where the caller is, as the site says it. */
export const geoblockRoutes = (realism: RealismControl): Route[] => [
  route('GET /api/geoblock', () => {
    const { geoblock } = realism.current()
    const country = geoblock === 'open' ? 'AR' : geoblock === 'blocked' ? 'US' : 'PL'
    return ok({ blocked: geoblock !== 'open', ip: '127.0.0.1', country, region: '' })
  }),
]
