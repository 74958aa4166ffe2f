/** Exits and look-ups first, then what was signed already, then new orders, then views, then the reconciler. */
export type Urgency = 'exit' | 'work' | 'admission' | 'view' | 'background'
