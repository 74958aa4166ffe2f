// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./shared/Addresses.sol";
import {CollateralBridge} from "./shared/CollateralBridge.sol";
import {ConditionalExchange} from "./shared/ConditionalExchange.sol";

/// For markets that exclude each other.
contract NegRiskExchange is ConditionalExchange {
    function _collateral() internal pure override returns (address) {
        return Addresses.WRAPPED_COLLATERAL;
    }

    function _adapter() internal pure override returns (CollateralBridge) {
        return CollateralBridge(Addresses.NEG_RISK_COLLATERAL_ADAPTER);
    }
}
