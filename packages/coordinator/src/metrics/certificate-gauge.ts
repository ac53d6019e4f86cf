/** When the server's certificate ends, of the one in use at the moment of the scrape. Where plain HTTP is spoken there is no sample. */
import { Gauge } from "prom-client";

/** The part of a TLS server that is looked at. */
export interface Certified {
  /** Undefined where plain HTTP is spoken. */
  readonly material: { readonly endsAtMs: number } | undefined;
}

type Registers = NonNullable<ConstructorParameters<typeof Gauge>[0]["registers"]>;

export function certificateGauge(registers: Registers, certified: Certified): void {
  const gauge = new Gauge({
    name: "callnumber_tls_certificate_expiry_timestamp_seconds",
    help: "When the TLS certificate in use ends.",
    registers,
    collect() {
      if (certified.material !== undefined) this.set(certified.material.endsAtMs / 1_000);
    },
  });
  // A gauge without labels begins at 0: that would be a certificate that ended in 1970.
  gauge.remove();
}
